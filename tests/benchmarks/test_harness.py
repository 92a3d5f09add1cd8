"""The harness as a user runs it: workloads, the documents that it writes, its command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks import results, tables, workloads
from benchmarks.budget import Budget
from benchmarks.goals import Found, Goal, goals, judged
from benchmarks.main import main
from benchmarks.measures import MEASURES
from benchmarks.runner import Plan, run, workload_tasks
from benchmarks.schema import faults
from benchmarks.workloads import TABLE, Case, select

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def loaded():
    workloads.load()


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """One small run, as JSON."""
    out = tmp_path_factory.mktemp("bench") / "run.json"
    assert main(["micro", "--quick", "--counters", "--only", "x plus 1", "-o", str(out)]) == 0
    return out


def test_every_suite_has_workloads_and_names_are_unique():
    assert {row.suite for row in TABLE.values()} == set(workloads.SUITES)
    assert select(["micro"], quick=True) and len(select(["micro"])) > len(select(["micro"], quick=True))


def test_a_new_workload_is_a_function(monkeypatch):
    monkeypatch.setattr(workloads, "TABLE", {})

    @workloads.workload("micro")
    def doubles() -> Case:
        return Case(lambda x: x * 2, (1.0,))

    assert [row.name for row in workloads.TABLE.values()] == ["doubles"]
    with pytest.raises(ValueError, match="no suite 'mikro'; suites are"):
        workloads.add("mikro", "w", doubles)


def test_a_case_names_its_backend():
    from benchmarks.measures.subject import optimized

    seen = []

    def keep(gm, inputs):
        seen.append(len(inputs))
        return gm.forward

    case = Case(lambda x: x + 1, (torch.ones(2),), backend=keep)
    case.caller(optimized(case))()
    assert seen == [1]


def test_fresh_code_each_time():
    row = TABLE["x plus 1"]
    first, second = row.fresh(), row.fresh()
    assert first.fn.__code__ is not second.fn.__code__
    assert TABLE["x plus 1"] is row


def test_counters_are_exact(counted):
    again = run(Plan(["micro"], True, False, "x plus 1", counters_only=True), lambda text, done, total: None)
    (row,) = results.read(counted)["workloads"]
    (same,) = again["workloads"]
    assert row["counters"] == same["counters"] == {
        "graphs": 1, "ops": 1, "compiles": 1, "breaks": 0, "recompiles": 0, "skipped": 0, "guards": 2,
    }  # fmt: skip
    assert abs(row["calls"] - same["calls"]) <= 2


def test_a_planted_guard_break_and_graph_are_found(counted, tmp_path, capsys):
    base = results.read(counted)
    base["workloads"][0]["counters"] |= {"guards": 1, "graphs": 0, "breaks": -1}
    base["workloads"][0]["calls"] = round(base["workloads"][0]["calls"] * 0.98)
    path = tmp_path / "base.json"
    results.write(base, path)
    assert main(["compare", str(path), str(counted)]) == 3
    said = capsys.readouterr().out
    for figure in ("guards 1 -> 2", "graphs 0 -> 1", "breaks -1 -> 0", "calls per compile", "4 regressions"):
        assert figure in said
    assert main(["compare", str(counted), str(counted)]) == 0


def taken(row: workloads.Workload, plan: Plan, budget: float = 60.0) -> dict:
    """The entry that the tasks of a workload fill."""
    document = results.new({}, None, True)
    tasks = workload_tasks(row, plan, document)
    shares = Budget(budget, sum(task.weight for task in tasks))
    for task in tasks:
        task.run(shares.next(task.weight))
    (entry,) = document["workloads"]
    return entry


def test_a_workload_that_fails_is_a_row_and_the_run_goes_on():
    def broken() -> Case:
        raise RuntimeError("planted\nsecond line")

    row = workloads.Workload("planted", "micro", broken, True, None, True, "")
    assert taken(row, Plan(["micro"], True, False, counters_only=True))["error"] == (
        "counters: RuntimeError: planted"
    )
    absent = workloads.Workload("absent", "micro", broken, True, "no_such_package", True, "")
    entry = taken(absent, Plan(["micro"], True, False))
    assert entry["not_run"] == "the package no_such_package is not installed"


def test_what_there_is_no_time_for_is_said():
    row = TABLE["x plus 1"]
    entry = taken(row, Plan(["micro"], True, False), budget=1e-9)
    assert entry["cut"] == [measure.name for measure in MEASURES if measure.of(row)]
    document = results.new({"python": "3", "torch": "2"}, None, True) | {"workloads": [entry]}
    assert "no time left for counters" in tables.plain(document)


def test_a_measure_that_takes_too_long_is_ended(monkeypatch):
    """Within half a second, in the middle of a call; the measures after it are cut."""

    def endless() -> Case:
        return Case(lambda x: time.sleep(60), (1,))

    row = workloads.Workload("endless", "micro", endless, True, None, True, "")
    monkeypatch.setattr("benchmarks.runner.load", lambda: None)
    monkeypatch.setattr(workloads, "TABLE", {"endless": row})
    begin = time.perf_counter()
    document = run(Plan(["micro"], True, False, "endless", seconds=0.5), lambda text, done, total: None)
    assert time.perf_counter() - begin < 10
    assert document["workloads"][0]["cut"] == [measure.name for measure in MEASURES if measure.of(row)]
    assert list(faults(document)) == []


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_every_measure_of_a_workload_under_the_schema(tmp_path):
    entry = taken(TABLE["x plus n"], Plan(["micro"], True, True), budget=200.0)
    assert set(entry) == {"name", "suite", "family"} | {measure.name for measure in MEASURES}
    document = results.new({"python": "3", "torch": "2"}, None, True) | {"workloads": [entry]}
    assert list(faults(document)) == []
    assert entry["peer_counters"]["graphs"] == 1 and entry["coverage"] == {"captured": 1, "total": 1}
    assert set(entry["recompiles"]["ms"]) == {"1", "2"} and set(entry["recompiles"]["peer_ms"]) == {"1"}
    assert entry["after_limit"]["ours"]["us"] > 0 and entry["guards"]["rows"] == entry["counters"]["guards"]
    assert set(entry["accuracy"]["kinds"]) == {"outputs", "gradients", "inputs"} and entry["accuracy"]["ok"]
    assert sum(entry["cold"]["stages"].values()) > 0
    results.write(document, tmp_path / "r.json")
    assert results.read(tmp_path / "r.json")["workloads"][0]["calls"] == entry["calls"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"quick": 1}, "document.quick is number instead of boolean"),
        ({"extra": 1}, "document.extra is not known"),
        ({"workloads": [{"name": "w", "suite": "s"}]}, "document.workloads[0].family is missing"),
        ({"workloads": {}}, "document.workloads is object instead of list"),
    ],
)
def test_a_document_of_another_form_is_refused(change, fault, tmp_path):
    document = results.new({"python": "3", "torch": "2"}, None, True)
    assert list(faults(document)) == []
    assert next(faults(document | change)) == fault
    results.write(document | change, tmp_path / "r.json")
    with pytest.raises(results.Unreadable, match="r.json: document"):
        results.read(tmp_path / "r.json")


def test_the_committed_baseline_fits_the_schema():
    document = results.read(ROOT / "benchmarks" / "baseline.json")
    assert not any("cold" in row and "ms" in row["cold"] for row in document["workloads"])


def test_tables(counted):
    document = results.read(counted)
    text = tables.markdown(document)
    assert "| x plus 1 |" in text and "A/A noise" in text
    assert "x plus 1\t" in tables.plain(document)


def test_a_stored_run_is_rendered_again(counted, tmp_path, capsys):
    assert main(["show", str(counted), "--plain", "--md", str(tmp_path / "r.md")]) == 0
    assert "micro\tx plus 1\t" in capsys.readouterr().out
    assert (tmp_path / "r.md").read_text() == tables.markdown(results.read(counted))


def test_a_portable_document_has_no_times(counted, tmp_path):
    document = results.read(counted)
    document["workloads"][0]["warm"] = {
        "floor": 0.01, "eager": {"value": 0.9, "low": 0.8, "high": 1.0, "pairs": 20, "a": 1e-6, "b": 1e-6},
    }  # fmt: skip
    document["workloads"][0]["cold"] = {"ms": 1.5, "over_peer": 0.05, "stages": {"lift": 0.1}}
    text = json.dumps(results.portable(document))
    assert '"over_peer"' in text and '"ms"' not in text and '"a"' not in text and '"load"' not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mikro"], "no suite 'mikro'; suites are micro"),
        (["--vs", "missing.json"], "missing.json: No such file or directory"),
        (["compare", "missing.json", "missing.json"], "missing.json: No such file"),
        (["--fail", "lots"], "'lots' is no share"),
        (["--budget", "soon"], "'soon' is no number of seconds"),
        (["show", "missing.json"], "missing.json: No such file"),
        (["--only", "no workload has this name"], "no workload fits"),
        (["--md", "/proc/no/r.md"], "/proc/no: "),
    ],
)
def test_wrong_usage_is_one_line(words, said, capsys):
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    error = capsys.readouterr().err
    assert said in error and len(error.strip().splitlines()) == 1


def test_a_file_of_another_kind(tmp_path, capsys):
    path = tmp_path / "other.json"
    path.write_text('{"schema": "other"}')
    assert main(["compare", str(path), str(path)]) == 2
    assert "schema 'other' instead of 'minidynamo-bench/2'" in capsys.readouterr().err
    path.write_text("{")
    assert main(["compare", str(path), str(path)]) == 2


def with_figures(counted: Path) -> dict:
    """The counted run with times that nobody measured."""
    document = results.read(counted)
    document["workloads"][0]["warm"] = {
        "floor": 0.01, "eager": {"value": 0.9, "low": 0.8, "high": 1.0, "pairs": 20, "a": 1e-6, "b": 1e-6},
    }  # fmt: skip
    document["workloads"][0]["cold"] = {
        "ms": 1.5, "low": 1.4, "high": 1.6, "rounds": 5, "over_peer": 0.05, "stages": {"translate": 1.0},
    }  # fmt: skip
    document["scaling"] = [{"family": "guards", "sizes": [1, 10], "calls": [10, 90], "calls_exponent": 0.95}]
    document["goals"] = goals(document)
    return document


FILES = {f"{name}.{ending}" for name in ("speed", "cold", "scaling") for ending in ("svg", "png")}


@pytest.mark.slow
def test_plots(counted, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib (extra `bench`)")
    from benchmarks.plots import draw

    assert {path.name for path in draw(with_figures(counted), tmp_path)} == FILES


@pytest.mark.slow
def test_the_page(counted, tmp_path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib (extra `bench`)")
    results.write(with_figures(counted), tmp_path / "run.json")
    assert (
        main(["show", str(tmp_path / "run.json"), "--plain", "--page", str(tmp_path / "performance.md")]) == 0
    )
    text = (tmp_path / "performance.md").read_text()
    assert "| cold compile, x + 1 | at most 1.5 ms | 1.50 ms | 1.40 to 1.60 |" in text and "reached" in text
    assert {path.name for path in (tmp_path / "performance").iterdir()} == FILES
    for picture in ("speed", "cold", "scaling"):
        assert f"](performance/{picture}.svg)" in text


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Found(0.9, 0.8, 1.0), "reached"),
        (Found(1.1, 0.95, 1.2), "within noise"),
        (Found(1.1, 1.08, 1.2, floor=0.15), "within noise"),
        (Found(1.1, 1.08, 1.2, floor=0.01), "missed"),
        (Found(1.0), "reached"),
        (None, "not measured"),
    ],
)
def test_verdicts(found, verdict):
    assert judged(Goal("w", 1.0, "at most 1", lambda document: found), found).verdict == verdict


@pytest.mark.slow
def test_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "minidynamo", "bench", "micro", "--quick", "--counters", "--only", "1 graph break"],
        capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 graph break" in done.stdout and "breaks=1" in done.stdout
