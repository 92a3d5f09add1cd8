"""What is planted is found, and runs of one thing raise no alarm: whole runs of a small suite, compared as a user compares them."""

from __future__ import annotations

import random

import pytest
import torch

import minidynamo
from benchmarks import results, workloads
from benchmarks.comparing import compare
from benchmarks.main import main
from benchmarks.measures import counting, timing
from benchmarks.runner import Plan, run
from benchmarks.sampling import ratio_of
from benchmarks.workloads import Case

NAME = "planted"
FULL = Plan(["micro"], quick=True, peer=False, only=NAME)
COUNTERS = Plan(["micro"], quick=True, peer=False, only=NAME, counters_only=True)


def layers(x: torch.Tensor) -> torch.Tensor:
    for _ in range(30):
        x = torch.sin(x) + 1
    return x


def with_a_guard(x: torch.Tensor, flag: int = 3) -> torch.Tensor:
    return layers(x) if flag == 3 else x


def without_a_guard(x: torch.Tensor, flag: int = 3) -> torch.Tensor:
    return layers(x)


def in_two_graphs(x: torch.Tensor) -> torch.Tensor:
    x = layers(x)
    minidynamo.graph_break()
    return x + 1


def in_one_graph(x: torch.Tensor) -> torch.Tensor:
    return layers(x) + 1


@pytest.fixture(autouse=True)
def as_users_run_it():
    with minidynamo.config.patch(guards="native", verify=False):
        yield


@pytest.fixture
def planted(monkeypatch):
    """A run of one workload that calls the function given. `slower`: the share of calls of the compiled function that are made twice;
    `calls`: Python calls more per compilation."""
    workloads.load()
    monkeypatch.setattr(workloads, "load", lambda: None)
    monkeypatch.setattr("benchmarks.runner.load", lambda: None)

    def go(fn, plan: Plan, *args, slower: float = 0.0, calls: int = 0):
        def make() -> Case:
            return Case(fn, (torch.ones(64), *args))

        row = workloads.Workload(NAME, "micro", make, True, None, True, "", ("counters", "calls", "warm"))
        monkeypatch.setattr(workloads, "TABLE", {NAME: row})
        monkeypatch.setattr(workloads.Workload, "fresh", workloads.Workload.case)

        def backend(gm, example_inputs):
            for _ in range(calls):
                abs(0)
            return gm.forward

        def optimized(case, chosen="eager"):
            return twice(minidynamo.optimize(backend if chosen == "eager" else chosen)(case.fn), slower)

        monkeypatch.setattr(timing, "optimized", optimized)
        monkeypatch.setattr(counting, "optimized", optimized)
        return run(plan, lambda text, done, total: None)

    return go


def twice(fn, share: float):
    """`fn`, that share of whose calls do their work twice, evenly spread."""
    if not share:
        return fn
    due = 0.0

    def call(*args):
        nonlocal due
        due += share
        if due >= 1:
            due -= 1
            fn(*args)
        return fn(*args)

    return call


def alarms(base, new, threshold: float = 0.05) -> list[str]:
    return [change.figure for change in compare(base, new, threshold) if change.worse]


def test_a_guard_more_is_found(planted):
    base, new = planted(without_a_guard, COUNTERS, 3), planted(with_a_guard, COUNTERS, 3)
    assert "guards" in alarms(base, new) and "graphs" not in alarms(base, new)


def test_a_graph_more_is_found(planted):
    found = alarms(planted(in_one_graph, COUNTERS), planted(in_two_graphs, COUNTERS))
    assert {"graphs", "breaks", "compiles"} <= set(found)


@pytest.mark.slow
def test_two_percent_more_calls_are_found_and_runs_of_one_thing_agree(planted):
    base = planted(layers, COUNTERS)
    more = round(base["workloads"][0]["calls"] * 0.02)
    assert alarms(base, planted(layers, COUNTERS, calls=more)) == ["calls per compile"]
    for _ in range(3):
        assert compare(base, planted(layers, COUNTERS), 0.05) == []


def simulated(ratio: float, seed: int) -> dict:
    """A run as a noisy machine gives it: the true ratio, the run's own shift (memory layout), pairs with slow moments."""
    draw = random.Random(seed)
    shift = draw.gauss(1, 0.006)
    pairs = []
    for _ in range(40):
        slow = draw.choice((1.0, 1.0, 1.0, 1.6))
        pairs.append((slow * draw.gauss(1, 0.02), slow * ratio * shift * draw.gauss(1, 0.02)))
    found = ratio_of(pairs)
    figures = {"value": found.value, "low": found.low, "high": found.high, "pairs": found.pairs}
    row = {"name": "w", "suite": "micro", "family": "", "warm": {"eager": figures, "floor": 0.015}}
    return results.new({}, None, True) | {"workloads": [row]}


def test_simulated_runs_of_one_thing_raise_no_alarm():
    base = simulated(0.8, 0)
    assert [seed for seed in range(1, 41) if alarms(base, simulated(0.8, seed))] == []


def test_a_simulated_slowdown_of_a_twentieth_is_found():
    base = simulated(0.8, 0)
    found = [seed for seed in range(1, 41) if alarms(base, simulated(0.84, seed))]
    assert len(found) >= 36


@pytest.mark.nightly  # times: whatever else runs on the machine is part of them
@pytest.mark.timeout(600)
def test_ten_runs_of_one_thing_raise_no_alarm(planted):
    base = planted(layers, FULL)
    for _ in range(10):
        assert alarms(base, planted(layers, FULL)) == []


@pytest.mark.nightly  # times: whatever else runs on the machine is part of them
@pytest.mark.timeout(600)
def test_a_slowdown_of_the_warm_path_is_found(planted, tmp_path, capsys):
    """A twentieth of the calls makes the work twice. Where the machine's own noise is larger than that, as the run says, three
    times as much is planted: what a run cannot see it must not report."""
    base = planted(layers, FULL)
    slower = 0.05 if noise(base) < 0.02 else 0.15 if noise(base) < 0.1 else 0.6
    new = planted(layers, FULL, slower=slower)
    if noise(new) >= slower:
        assert alarms(base, new) == []  # drowned, and said so
        pytest.skip(f"the A/A noise of this machine, {noise(new):.0%}, is larger than what is planted")
    for name, document in (("base", base), ("new", new)):
        results.write(document, tmp_path / f"{name}.json")
    words = ["compare", str(tmp_path / "base.json"), str(tmp_path / "new.json"), "--fail", "5%"]
    assert main(words) == 3, capsys.readouterr().out
    assert f"REGRESSION  {NAME}: warm call over eager" in capsys.readouterr().out


def noise(document: dict) -> float:
    """The A/A noise and the width of the interval of a run."""
    warm = document["workloads"][0]["warm"]
    return max(warm["floor"], (warm["eager"]["high"] - warm["eager"]["low"]) / 2)
