"""The plan of a run: which measures of which workloads, in what order, and what is said meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import measures, process, results
from .sampling import FULL, QUICK
from .scaling import curves
from .workloads import SUITES, Workload, load, select

ROOT = Path(__file__).resolve().parents[1]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the command line asked for."""

    suites: list[str]
    quick: bool
    peer: bool
    only: str | None = None
    counters_only: bool = False


def run(plan: Plan, progress: Progress) -> dict[str, Any]:
    """The whole run as a JSON value (`results.SCHEMA`). A workload that fails is a row with its error; the run goes on."""
    load()
    document = results.new(process.machine(), process.revision(), plan.quick)
    own = [suite for suite in plan.suites if suite != "device" or plan.suites == ["device"]]
    rows = select(own, plan.only, plan.quick)
    for index, row in enumerate(rows, 1):
        progress(f"{index}/{len(rows)}  {row.suite}: {row.name}")
        document["workloads"].append(measured(row, plan))
    if "device" in plan.suites and "device" not in own:
        progress("device, in a process of its own")
        document["workloads"] += device_rows(plan)
    document["scaling"] = curves(document["workloads"])
    if not plan.counters_only and plan.only is None and "micro" in plan.suites:
        progress("memory and start")
        document["process"] = {
            "memory": process.memory(30 if plan.quick else 100),
            "leak": process.leak(20 if plan.quick else 200),
            "start": process.start(2 if plan.quick else 5),
        }
    return document


def measured(row: Workload, plan: Plan) -> dict[str, Any]:
    """One workload's figures."""
    entry: dict[str, Any] = {"name": row.name, "suite": row.suite, "family": row.family}
    missing = row.missing()
    if missing is not None:
        return entry | {"not_run": missing}
    scaling = row.suite == "scaling"
    subject = measures.Subject(
        row, QUICK if plan.quick else FULL, 2 if plan.quick else 5, plan.peer and not scaling
    )
    wanted: Iterable[tuple[str, Callable[[measures.Subject], Any], bool]] = (
        ("counters", measures.counters, True),
        ("calls", measures.calls_per_compile, row.cold),
        ("accuracy", measures.accuracy, not plan.counters_only and not scaling),
        ("cold", measures.cold, row.cold and not plan.counters_only),
        ("warm", measures.warm, not plan.counters_only and not scaling),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = row.build()
            if case.size is not None:
                entry["size"] = case.size
            for name, measure, asked in wanted:
                if asked:
                    entry[name] = measure(subject)
        except Exception as error:
            entry["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        finally:
            measures.forget()
    return entry


def device_rows(plan: Plan) -> list[dict[str, Any]]:
    """The device suite: the process that imports the device has it as its accelerator."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "device.json"
        command = [sys.executable, "-m", "benchmarks", "device", "-o", str(out), "--plain"]
        command += ["--quick"] if plan.quick else []
        command += ["--counters"] if plan.counters_only else []
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        if not out.exists():
            said = done.stderr.strip().splitlines() or ["no output"]
            return [{"name": "device suite", "suite": "device", "family": "", "error": said[-1]}]
        return list(results.read(out)["workloads"])


__all__ = ["SUITES", "Plan", "run"]
