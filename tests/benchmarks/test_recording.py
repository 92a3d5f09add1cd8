"""Recording costs a warm call nothing: exact counters, and times that tell no difference."""

from __future__ import annotations

import pytest

from benchmarks.recording import PROGRAMS, Cost, cost, counted, recording, told
from benchmarks.sampling import QUICK, Ratio


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_warm_calls_write_nothing_and_count_the_same(program):
    with recording() as recorder:
        call = program()
        for _ in range(4):
            call()
        assert any(record["event"] == "compile" for record in recorder.records)
        before = len(recorder.records)
        on = counted(call)
        assert len(recorder.records) == before
    assert counted(call) == on
    assert sum(count for name, count in on.items() if name.startswith("hits_")) > 0
    assert on["converts"] == on["misses"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_recorder_costs_warm_calls_no_time(program):
    found = cost(program, QUICK)
    assert found.ok, told(found)


def test_what_is_not_ok():
    def ratio(value: float, low: float) -> Ratio:
        return Ratio(value, low, value + 0.01, 9, 1e-6, 1e-6)

    fine = Cost("f", ratio(1.05, 1.02), ratio(1, 0.99), {}, 0)
    assert fine.ok and "counters equal" in told(fine)
    assert not Cost("f", ratio(1.05, 1.04), ratio(1, 0.99), {}, 0).ok
    assert not Cost("f", ratio(1, 0.99), ratio(1, 0.99), {"misses": (0, 1)}, 0).ok
    assert not Cost("f", ratio(1, 0.99), ratio(1, 0.99), {}, 1).ok
