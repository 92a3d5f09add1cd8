"""Tests of the simulated accelerator run in processes of their own, a process per file: a process can have one PrivateUse1 device,
and the session of the other tests must stay without. Test modules never import the device themselves, since every session
imports them to collect; it is registered here, inside.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPORTS = os.environ.get("OPENREG_TEST_REPORTS")  # set inside: where the reports go
BUILT = importlib.util.find_spec("minidynamo.openreg") and any(
    (ROOT / "minidynamo" / "openreg").glob("_C.*.so")
)
FILE_TIMEOUT = 3000  # seconds

_reports: dict[Path, dict[str, list[Any]]] = {}
_endings: dict[Path, str] = {}

if REPORTS:
    import minidynamo.openreg  # noqa: F401

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Any:
        report = yield
        data = item.config.hook.pytest_report_to_serializable(config=item.config, report=report)
        with open(str(REPORTS), "a") as out:
            out.write(json.dumps(data) + "\n")
        return report

    @pytest.fixture(autouse=True)
    def device_as_found() -> Any:
        """Every test begins on device 0 and must leave it current."""
        import torch

        torch.openreg.set_device(0)
        yield
        torch.openreg.set_device(0)

else:

    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.timeout(0))  # the process inside minds the time of each test
                if not BUILT:
                    item.add_marker(
                        pytest.mark.skip(reason="minidynamo.openreg is not built: no C++ compiler")
                    )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not BUILT or Path(__file__).parent not in item.path.parents:
            return None
        if item.path not in _reports:
            _reports[item.path] = run_file(item)
        hooks = item.ihook
        hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in _reports[item.path].get(item.nodeid) or [lost(item)]:
            hooks.pytest_runtest_logreport(report=report)
        hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def run_file(item: pytest.Item) -> dict[str, list[Any]]:
    """Run what this session has of the item's file in a new process; its reports by node id."""
    wanted = [other.nodeid for other in item.session.items if other.path == item.path]
    base = Path(item.config.rootpath, "build", "openreg-tests")
    base.mkdir(parents=True, exist_ok=True)
    names, reports = (base / f"{item.path.stem}.{os.getpid()}.{kind}" for kind in ("names", "reports"))
    names.write_text("\n".join(wanted))
    reports.unlink(missing_ok=True)
    reports.touch()
    environment = os.environ | {"OPENREG_TEST_REPORTS": str(reports), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:terminalreporter"]
    done = subprocess.run(
        [*command, f"--rootdir={item.config.rootpath}", f"@{names}"],
        cwd=item.config.rootpath,
        env=environment,
        capture_output=True,
        text=True,
        timeout=FILE_TIMEOUT,
        check=False,
    )
    _endings[item.path] = f"exit status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    found: dict[str, list[Any]] = {}
    for line in reports.read_text().splitlines():
        report = item.config.hook.pytest_report_from_serializable(config=item.config, data=json.loads(line))
        found.setdefault(report.nodeid, []).append(report)
    names.unlink()
    reports.unlink()
    if done.returncode not in (0, 1):  # died at exit, after its reports
        for each in found.values():
            each[-1].outcome, each[-1].longrepr = "failed", _endings[item.path]
    return found


def lost(item: pytest.Item) -> Any:
    """The report of a test whose process died before it could report."""
    return pytest.TestReport(
        item.nodeid, item.location, {}, "failed", f"its process died: {_endings[item.path]}", "call"
    )
