"""Live locals."""

from __future__ import annotations

from typing import Any

from minidynamo.pycode.lift import lift
from minidynamo.pycode.liveness import live_locals
from tests.pycode.corpus import CASES
from tests.pycode.interp import NULL, Frame, begin
from tests.pycode.outcome import fresh


def live_at(function: Any, opname: str, arg: Any = None, nth: int = 0) -> set[str]:
    ir = lift(function.__code__)
    found = [i for i in ir.instructions if i.opname == opname and arg in (None, i.arg)]
    return set(live_locals(ir)[found[nth].index])


def test_straight_line():
    def f(x, y):
        z = x
        z = z, y
        return z

    assert live_at(f, "LOAD_FAST", "x") == {"x", "y"}
    assert live_at(f, "LOAD_FAST", "z") == {"y", "z"}
    assert live_at(f, "RETURN_VALUE") == set()


def test_branches():
    def f(x, y, z):
        if x:
            return y
        return z

    assert live_at(f, "LOAD_FAST", "x") == {"x", "y", "z"}
    assert live_at(f, "LOAD_FAST", "z") == {"z"}


def test_loop():
    def f(items, y):
        total = 0
        for i in items:
            total += i * y
        return total

    assert live_at(f, "FOR_ITER") == {"total", "y"}
    assert live_at(f, "STORE_FAST", "i") == {"total", "y"}


def test_handler():
    def f(x, y):
        try:
            z = x()
        except KeyError:
            return y
        return z

    assert live_at(f, "CALL") == {"y"}
    assert live_at(f, "CHECK_EXC_MATCH") == {"y"}


def test_deleting_needs_a_bound_local():
    def f(x):
        del x

    assert live_at(f, "DELETE_FAST") == {"x"}


def test_cells_are_left_out():
    def f(x):
        return lambda: x

    ir = lift(f.__code__)
    assert all("x" not in names for names in live_locals(ir))


class Watched(dict[str, Any]):
    """Slots that note which names are read before they are written."""

    def __init__(self, slots: dict[str, Any]) -> None:
        super().__init__(slots)
        self.read: set[str] = set()
        self.written: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self.written:
            self.read.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.written.add(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self.written:
            self.read.add(name)
        super().__delitem__(name)


def run(frame: Frame) -> None:
    try:
        frame.run()
    except BaseException:
        return


def test_what_is_read_was_live():
    """In every function of the corpus, half way: what the rest reads before writing is live there."""
    for function, inputs in CASES:
        for args in inputs:
            counting = begin(function, fresh(args))
            steps = 0
            try:
                while True:
                    counting.step()
                    steps += 1
            except BaseException:
                half = steps // 2
            frame = begin(function, fresh(args))
            for _ in range(half):
                frame.step()
            live = live_locals(frame.ir)[frame.next]
            cells = {*function.__code__.co_cellvars, *function.__code__.co_freevars}
            frame.slots = watched = Watched(frame.slots)
            run(frame)
            assert watched.read - cells <= live | {NULL}, function.__name__
