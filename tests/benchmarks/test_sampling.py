"""Pairs, intervals, and the decision whether something has become slower."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.comparing import compare
from benchmarks.sampling import QUICK, Effort, bootstrap, floor, paired, ratio_of
from benchmarks.scaling import exponent


def noisy_pairs(ratio: float, noise: float, count: int, seed: int) -> list[tuple[float, float]]:
    """Pairs of a machine that is slow now and then, both sides alike."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        slow = draw.choice((1.0, 1.0, 1.7))
        pairs.append((slow * draw.gauss(1, noise), slow * ratio * draw.gauss(1, noise)))
    return pairs


def document(ratio: float, seed: int, floor: float = 0.02) -> dict:
    found = ratio_of(noisy_pairs(ratio, 0.02, 60, seed))
    eager = {"value": found.value, "low": found.low, "high": found.high, "pairs": found.pairs}
    row = {"name": "w", "suite": "micro", "counters": {"guards": 4, "graphs": 1, "ops": 3}, "calls": 1000}
    return {"workloads": [row | {"warm": {"eager": eager, "floor": floor}}]}


def test_a_ratio_is_found_through_common_noise():
    for seed in range(5):
        ratio = ratio_of(noisy_pairs(1.25, 0.03, 80, seed))
        assert ratio.low <= ratio.value <= ratio.high
        assert abs(ratio.value - 1.25) < 0.03


def test_the_interval_is_the_same_for_the_same_values():
    values = [math.sin(i) for i in range(30)]
    assert bootstrap(values) == bootstrap(values)


def test_runs_of_one_thing_raise_no_alarm():
    base = document(0.8, 100)
    for seed in range(10):
        assert [c for c in compare(base, document(0.8, seed), 0.05) if c.worse] == []


def test_a_slowdown_of_a_twentieth_and_more_is_found():
    base = document(0.8, 100)
    for seed in range(10):
        (change,) = compare(base, document(0.8 * 1.07, seed), 0.05)
        assert change.worse and "warm call" in str(change)


def test_a_change_below_the_noise_of_the_machine_is_none():
    assert compare(document(0.8, 1), document(0.8 * 1.1, 2, floor=0.2), 0.05) == []


@pytest.mark.parametrize(
    ("change", "worse"),
    [
        ({"counters": {"guards": 5, "graphs": 1}}, ["guards"]),
        ({"counters": {"guards": 4, "graphs": 2}}, ["graphs"]),
        ({"calls": 1020}, ["calls per compile"]),
        ({"calls": 1002}, []),
        ({"counters": {"guards": 3, "graphs": 1}}, []),
        ({"error": "ValueError: no"}, ["fails (ValueError: no)"]),
        ({"accuracy": {"error": 1.0, "eager_error": 0.1, "ok": False}}, ["error against fp64"]),
    ],
)
def test_counters_compare_exactly(change, worse):
    base, new = document(0.8, 1), document(0.8, 1)
    new["workloads"][0].update(change)
    assert [c.figure for c in compare(base, new, 0.05) if c.worse] == worse


def test_a_planted_slowdown_is_measured():
    """Real time: the second callable does the first's work one and a half times."""

    def work(rounds: int) -> int:
        total = 0
        for i in range(rounds):
            total += i * i
        return total

    ratio = paired(lambda: work(2000), lambda: work(3000), QUICK)
    assert 1.2 < ratio.low and ratio.high < 1.9
    assert floor(lambda: work(2000), Effort(0.001, 10, 10, 0.5)) < 0.5


def test_exponents():
    assert exponent([(10, 5.0), (100, 50.0), (1000, 500.0)]) == pytest.approx(1.0)
    assert exponent([(10, 1.0), (100, 100.0)]) == pytest.approx(2.0)
