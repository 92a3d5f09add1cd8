"""The plan of a run: which measures of which workloads, in what order, within what time, and what is said meanwhile."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import measures, neutrality, process, results
from .budget import COUNTERS_SECONDS, FULL_SECONDS, QUICK_SECONDS, Budget, Share, TimeUp, ends_after
from .goals import goals
from .measures import MEASURES, Measure
from .measures.guarding import kinds
from .measures.subject import forget, limits
from .sampling import FULL, QUICK, Effort, pinned
from .scaling import curves
from .workloads import SUITES, Workload, load, select

ROOT = Path(__file__).resolve().parents[1]
Progress = Callable[[str, int, int], None]  # what is done now, how many steps are done, of how many


@dataclass(frozen=True, slots=True)
class Plan:
    """What the command line asked for. seconds: the time budget, None: the usual one."""

    suites: list[str]
    quick: bool
    peer: bool
    only: str | None = None
    counters_only: bool = False
    seconds: float | None = None

    @property
    def effort(self) -> Effort:
        return QUICK if self.quick else FULL

    @property
    def budget(self) -> float:
        if self.seconds is not None:
            return self.seconds
        if self.counters_only:
            return COUNTERS_SECONDS
        return QUICK_SECONDS if self.quick else FULL_SECONDS


@dataclass(frozen=True, slots=True)
class Task:
    """One step of a run. `run` takes its share of the time and puts its figures where they belong; None means the time is used up.
    group: tasks of one group follow each other without a collection of garbage between."""

    group: str
    title: str
    weight: float
    run: Callable[[Share | None], None]


def run(plan: Plan, progress: Progress) -> dict[str, Any]:
    """The whole run as a JSON value (`results.SCHEMA`). A workload that fails is a row with its error; the run goes on."""
    load()
    document = results.new(process.machine(), process.revision(), plan.quick)
    tasks: list[Task] = []
    own = [suite for suite in plan.suites if suite != "device" or plan.suites == ["device"]]
    if plan.peer and not plan.counters_only:
        import torch._dynamo  # noqa: F401  (once, outside of what is measured)
    if not plan.counters_only and plan.only is None and "micro" in plan.suites:
        tasks += process_tasks(plan, document)
    for row in select(own, plan.only, plan.quick):
        tasks += workload_tasks(row, plan, document)
    if "device" in plan.suites and "device" not in own and plan.only is None:
        tasks.append(
            Task(
                "process",
                "device, in a process of its own",
                8,
                lambda share: device_rows(plan, share, document),
            )
        )
    budget = Budget(plan.budget, sum(task.weight for task in tasks))
    done, before = 0, ""
    try:
        with ends_after(plan.budget):
            for task in tasks:
                progress(task.title, done, len(tasks))
                if task.group != before:
                    settle()
                    before = task.group
                task.run(budget.next(task.weight))
                done += 1
    except TimeUp:
        for task in tasks[done:]:
            task.run(None)
    gc.unfreeze()
    document["scaling"] = curves(document["workloads"])
    document["budget"] = {"seconds": plan.budget, "used": round(budget.used(), 1)}
    document["goals"] = [] if plan.counters_only else goals(document)
    progress("done", len(tasks), len(tasks))
    return document


# --- workloads -----------------------------------------------------------------------------------------------------------------
def workload_tasks(row: Workload, plan: Plan, document: dict[str, Any]) -> list[Task]:
    """One task per measure; they fill one entry of the document."""
    entry: dict[str, Any] = {"name": row.name, "suite": row.suite, "family": row.family}
    document["workloads"].append(entry)
    missing = row.missing()
    if missing is not None:
        entry["not_run"] = missing
        return []
    asked = [
        m
        for m in MEASURES
        if m.of(row) and (m.exact or not plan.counters_only) and (not row.measures or m.name in row.measures)
    ]
    if not asked:
        document["workloads"].remove(entry)
    return [
        Task(
            row.name,
            f"{row.suite}: {row.name}: {m.name}",
            m.weight,
            lambda share, m=m: take(m, row, plan, entry, share),
        )
        for m in asked
    ]


def take(measure: Measure, row: Workload, plan: Plan, entry: dict[str, Any], share: Share | None) -> None:
    """Puts what `measure` finds into `entry`, or its name under `cut` when there is no time, or the error."""
    if share is None:
        entry.setdefault("cut", []).append(measure.name)
        return
    subject = measures.Subject(row, plan.effort, 2 if plan.quick else 5, plan.peer, share)
    with calm(), limits(peer=plan.peer and not measure.exact):
        try:
            size = row.case().size
            if size is not None:
                entry["size"] = size
            found = measure.take(subject)
            if found is not None:
                entry[measure.name] = found
        except Exception as error:
            entry.setdefault("error", f"{measure.name}: {type(error).__name__}: {first_line(error)}")
        finally:
            forget()


@contextlib.contextmanager
def calm() -> Iterator[None]:
    """One thread, and nothing is said meanwhile."""
    with pinned(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


def settle() -> None:
    """What lives now is left out of the garbage collections of the next measures: they come before each compilation that is timed."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def device_rows(plan: Plan, share: Share | None, document: dict[str, Any]) -> None:
    """The device suite: the process that imports the device has it as its accelerator."""
    failed = {"name": "device suite", "suite": "device", "family": ""}
    if share is None:
        document["workloads"].append(failed | {"cut": ["all"]})
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "device.json"
        command = [sys.executable, "-m", "benchmarks", "device", "-o", str(out), "--plain"]
        command += ["--budget", str(max(1.0, share.left()))]
        command += ["--quick"] if plan.quick else []
        command += ["--counters"] if plan.counters_only else []
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        if out.exists():
            document["workloads"] += results.read(out)["workloads"]
        else:
            said = done.stderr.strip().splitlines() or ["no output"]
            document["workloads"].append(failed | {"error": said[-1]})


# --- what belongs to no workload -----------------------------------------------------------------------------------------------
def process_tasks(plan: Plan, document: dict[str, Any]) -> list[Task]:
    """Guard kinds, memory, leaks, neutrality after the hook, start of processes."""
    from .suites.guard_kinds import programs

    sides = list(process.SIDES)[: 2 if plan.peer and not plan.quick else 1]
    few = plan.quick
    found: dict[str, Any] = document["process"]

    def noted(name: str, make: Callable[[Share], Any]) -> Callable[[Share | None], None]:
        def task(share: Share | None) -> None:
            if share is None:
                found.setdefault("cut", []).append(name)
                return
            try:
                with calm():
                    found[name] = make(share)
            except ModuleNotFoundError as error:
                found.setdefault("not_run", {})[name] = f"the package {error.name} is not installed"
            except (subprocess.CalledProcessError, RuntimeError, OSError) as error:
                found.setdefault("errors", {})[name] = f"{type(error).__name__}: {first_line(error)}"

        return task

    def fresh(figure: str, count: int) -> Callable[[Share], Any]:
        return lambda share: {side: process.in_fresh_process(figure, side, count) for side in sides}

    effort = replace(plan.effort, most=40)
    return [
        Task(
            "process",
            "cost of guards by kind",
            10,
            noted("kinds", lambda share: kinds(programs(), effort, share)),
        ),
        Task("process", "memory", 10, noted("memory", fresh("memory", 20 if few else 100))),
        Task("process", "leak", 10, noted("leak", fresh("leak", 20 if few else 200))),
        Task(
            "process",
            "neutrality after the hook",
            10,
            noted("neutrality", lambda share: neutrality.restored(plan.effort, share)),
        ),
        Task("process", "x + 1 over jax", 4, noted("jit", lambda share: process.jit(plan.effort, share))),
        Task("process", "start", 20, noted("start", lambda share: process.start(2 if few else 5, share))),
    ]


__all__ = ["SUITES", "Plan", "run"]
