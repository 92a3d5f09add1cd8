"""Pairs, intervals, the time budget, and the decision whether something has become slower."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.budget import RESERVE, Budget, Share
from benchmarks.comparing import compare
from benchmarks.sampling import (
    FEWEST,
    QUICK,
    Effort,
    bootstrap,
    enough,
    floor,
    paired,
    ratio_of,
    rough_half_width,
)
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
        assert len(ratio.raw) == ratio.pairs == 80


def test_the_interval_is_the_same_for_the_same_values():
    values = [math.sin(i) for i in range(30)]
    assert bootstrap(values) == bootstrap(values)


def test_the_cheap_half_width_is_near_the_bootstrap_one():
    for seed in range(5):
        draw = random.Random(seed)
        values = [draw.gauss(0, 1) for _ in range(60)]
        low, high = bootstrap(values)
        assert 0.5 < rough_half_width(values) / ((high - low) / 2) < 2


# --- the budget ----------------------------------------------------------------------------------------------------------------
class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pairs_end_with_the_half_width_or_with_the_share():
    effort = Effort(0.01, 30, 150, 0.02)
    steady, wild = [(1.0, 1.0)] * 30, noisy_pairs(1.0, 0.3, 149, 1)
    assert not enough(steady[:29], effort, True)
    assert enough(steady, effort, True)
    assert not enough(wild, effort, True)
    assert enough([*wild, wild[0]], effort, True)
    assert enough(wild[:FEWEST], effort, False) and not enough(wild[: FEWEST - 1], effort, False)


def test_shares_follow_the_weights_and_what_is_left():
    clock = Clock()
    budget = Budget(100.0, 4.0, clock)
    usable = 100.0 * (1 - RESERVE)
    first = budget.next(1.0)
    assert first is not None and first.left() == pytest.approx(usable / 4)
    second = budget.next(1.0)  # the first needed nothing: the others have more
    assert second is not None and second.left() == pytest.approx(usable / 3)
    clock.now = usable
    assert budget.next(1.0) is None and second.left() < 0


def test_no_task_begins_after_the_budget_and_the_sum_never_exceeds_it():
    """Tasks that use all of their share, and steps that are cut: the whole stays below the budget."""
    draw = random.Random(0)
    for _ in range(50):
        clock, weights = Clock(), [draw.uniform(1, 10) for _ in range(40)]
        budget = Budget(60.0, sum(weights), clock)
        for weight in weights:
            share = budget.next(weight)
            if share is None:
                break
            step = draw.uniform(0, 0.3)
            while share.fits(step):
                clock.now += step
                step = draw.uniform(0.01, 0.3)
        assert clock.now <= 60.0


def test_parts_of_a_share():
    clock = Clock()
    share = Share(8.0, clock)
    assert share.part(4).left() == 2.0
    clock.now = 5.0
    assert share.part(3).left() == 1.0
    clock.now = 9.0
    assert share.part(1).left() == 0.0


# --- two runs ------------------------------------------------------------------------------------------------------------------
def test_runs_of_one_thing_raise_no_alarm():
    base = document(0.8, 100)
    for seed in range(10):
        assert [c for c in compare(base, document(0.8, seed), 0.05) if c.worse] == []


@pytest.mark.parametrize("slower", [1.05, 1.07, 1.5])
def test_a_slowdown_of_a_twentieth_and_more_is_found(slower):
    base = document(0.8, 100)
    for seed in range(10):
        (change,) = compare(base, document(0.8 * slower, seed), 0.05)
        assert change.worse and "warm call" in str(change) and "between +" in str(change)


def test_a_slowdown_below_the_threshold_is_none():
    base = document(0.8, 100)
    for seed in range(10):
        assert compare(base, document(0.8 * 1.01, seed), 0.05) == []


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
        ({"coverage": {"captured": 2, "total": 3}}, ["operators outside of graphs"]),
        ({"error": "ValueError: no"}, ["fails (ValueError: no)"]),
        ({"accuracy": {"error": 1.0, "eager_error": 0.1, "ok": False}}, ["error against fp64"]),
    ],
)
def test_counters_compare_exactly(change, worse):
    base, new = document(0.8, 1), document(0.8, 1)
    base["workloads"][0]["coverage"] = {"captured": 3, "total": 3}
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
    one = Effort(0.001, 10, 10, 0.5)
    assert floor(lambda: work(2000), lambda: work(2000), one) < 0.5


def test_a_share_that_is_used_up_ends_the_pairs():
    ratio = paired(lambda: sum(range(100)), lambda: sum(range(100)), Effort(0.01, 30, 1000, 0.0), Share(0.0))
    assert ratio.pairs == FEWEST


def test_exponents():
    assert exponent([(10, 5.0), (100, 50.0), (1000, 500.0)]) == pytest.approx(1.0)
    assert exponent([(10, 1.0), (100, 100.0)]) == pytest.approx(2.0)
