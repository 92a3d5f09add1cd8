"""A function that is continued at any of its instructions does what it would have done."""

from __future__ import annotations

import gc
import inspect
import opcode
import sys
import weakref
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

from minidynamo.exc import InternalError
from minidynamo.pycode.lift import lift
from minidynamo.pycode.resume import (
    UNBOUND,
    FrameState,
    ResumePoint,
    is_resume_code,
    origin_offset,
    resumable,
    resume_code,
)
from minidynamo.pycode.verify import decode, verify
from tests.pycode.corpus import CASES
from tests.pycode.interp import Frame, begin
from tests.pycode.outcome import Outcome, fresh, outcome
from tests.pycode.resuming import (
    MACHINERY,
    continued,
    function_of,
    given,
    state_of,
    stopped,
    stops,
    values_for,
)


def assert_same(expected: Outcome, got: Outcome, frame: Frame) -> None:
    """Equal in result, arguments and traceback.

    An exception that was raised before the stop lacks the function's own frame of then: the interpreter ran it.
    """
    assert (got.result, got.args) == (expected.result, expected.args)
    if got.error is not None and id(got.error) in frame.seen:
        wanted = iter(expected.lines)
        assert all(line in wanted for line in got.lines)  # a part of them, in their order
    else:
        assert got.lines == expected.lines


def ids(cases: list[tuple[Any, Any]]) -> list[str]:
    return [f"{number}-{function.__name__}" for number, (function, _) in enumerate(cases)]


def split_everywhere(
    function: FunctionType, inputs: tuple[tuple[Any, ...], ...], every: int, visits: int
) -> Iterator[int]:
    for args in inputs:
        expected = outcome(function, fresh(args), MACHINERY)
        for number, (steps, offset) in enumerate(stops(function, fresh(args), visits)):
            if number % every:
                continue
            arguments = fresh(args)
            frame = stopped(function, arguments, steps)
            run, _ = continued(frame)
            assert_same(expected, outcome(run, arguments, MACHINERY), frame)
            yield offset


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=ids(CASES))
def test_split(function, inputs):
    """At a sample of the points: every third one with the first arguments, every ninth with the others."""
    sparse = 20 if len(function.__code__.co_code) > 3000 else 1
    for number, args in enumerate(inputs):
        assert list(split_everywhere(function, (args,), sparse * (3 if number == 0 else 9), 1))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "inputs"), CASES, ids=ids(CASES))
def test_split_at_every_point(function, inputs):
    assert list(split_everywhere(function, inputs, 1, 3))


def advance(frame: Frame, code: CodeType, count: int) -> int:
    """Step a resume function past its prologue and `count` further instructions that can be continued at; the
    offset there."""
    while True:
        instruction = frame.instruction
        offset = origin_offset(code, instruction.offset)
        inside = (
            instruction.offset >= 0 and origin_offset(code, instruction.offset + 2) != offset
        )  # not the prologue
        if inside and frame.ir.is_boundary(instruction.index) and resumable(code, offset):
            if not count:
                return offset
            count -= 1
        frame.step()


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=ids(CASES))
def test_resume_of_a_resume(function, inputs):
    """Stop a resume function once more: the second resume code is made from the original bytes too."""
    expected = outcome(function, fresh(inputs[0]), MACHINERY)
    points = list(stops(function, fresh(inputs[0]), 1))
    arguments = fresh(inputs[0])
    frame = stopped(function, arguments, points[0][0])
    first = resume_code(function.__code__, state_of(frame))
    values = values_for(first.params, frame)
    names = first.code.co_varnames[: len(values)]
    again = Frame(function_of(first.code, function), dict(zip(names, values, strict=True)))
    offset = advance(again, first.code, len(points) // 2)
    slots = frozenset(name for name in again.slots if not name.startswith("___"))
    second = resume_code(first.code, FrameState(offset, state_of(again).stack, slots))
    assert len(second.code.co_code) - len(function.__code__.co_code) < 2 * 20 * (2 + len(second.params))
    run = given(function_of(second.code, function), values_for(second.params, again))
    assert_same(expected, outcome(run, arguments, MACHINERY), again)


# the shape of a resume code ---------------------------------------------------------------------------------
def loop(n, y):
    total = 0
    for i in range(n):
        total += i * y
    return total


def offset_of(function: FunctionType, opname: str, arg: Any = None, nth: int = 0) -> int:
    found = [i for i in lift(function.__code__).instructions if i.opname == opname and arg in (None, i.arg)]
    return found[nth].offset


def test_original_bytes_follow_the_prologue():
    code = loop.__code__
    made = resume_code(code, FrameState(offset_of(loop, "FOR_ITER"), (True,), frozenset({"n", "y", "total"})))
    assert made.code.co_code.endswith(code.co_code)
    assert made.params == ("n", "y", "total", "i", "___stack0")
    assert (made.code.co_name, made.code.co_qualname) == (code.co_name, code.co_qualname)
    assert (made.code.co_filename, made.code.co_firstlineno) == (code.co_filename, code.co_firstlineno)
    run = function_of(made.code, loop)
    assert run(9, 2, 5, UNBOUND, iter([3, 4])) == 5 + 6 + 8


def test_positions():
    """The prologue is at the instruction that it continues at; every other instruction is where it was."""
    code = loop.__code__
    offset = offset_of(loop, "BINARY_OP", "+=")
    made = resume_code(code, FrameState(offset, (True, True, True), None))
    original, new = list(code.co_positions()), list(made.code.co_positions())
    length = len(new) - len(original)
    assert new[:length] == [original[offset // 2]] * length
    assert new[length:] == original


def test_arguments_of_every_kind():
    def every(a, /, b, *rest, c, **more):
        d = [a, b, rest, c, more]
        return d, len(d)

    made = resume_code(every.__code__, FrameState(offset_of(every, "LOAD_GLOBAL"), (True,), None))
    flags = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    assert not made.code.co_flags & flags
    assert made.code.co_argcount == len(made.params) and not made.code.co_posonlyargcount
    assert not made.code.co_kwonlyargcount


def test_unbound_locals_are_unbound():
    def f(x):
        if x:
            y = 1
        z = x
        return y, z

    made = resume_code(f.__code__, FrameState(offset_of(f, "STORE_FAST", "z"), (True,), frozenset({"x"})))
    with pytest.raises(UnboundLocalError):
        function_of(made.code, f)(0, UNBOUND, UNBOUND, 5)


def test_stack_values_leave_their_parameters():
    """Nothing but the stack holds a stack value: it dies when the program drops it."""

    class Tracked:
        pass

    def f(make, alive):
        make()
        return alive()

    made = resume_code(f.__code__, FrameState(offset_of(f, "POP_TOP"), (True,), None))
    run = function_of(made.code, f)
    holder = [Tracked()]
    alive = weakref.ref(holder[0])
    result = run(None, alive, holder.pop())
    assert result is None


def test_free_variables_shift_only_with_a_stack():
    one, two = 1, 2

    def f(x):
        return one + x * two

    first = offset_of(f, "LOAD_DEREF", "one")
    later = offset_of(f, "LOAD_DEREF", "two")
    without = resume_code(f.__code__, FrameState(first, (), None))
    assert without.code.co_code.endswith(f.__code__.co_code)
    with_stack = resume_code(f.__code__, FrameState(later, (True, True), None))
    assert not with_stack.code.co_code.endswith(f.__code__.co_code)
    assert with_stack.code.co_freevars == f.__code__.co_freevars
    assert function_of(with_stack.code, f)(5, 10, 3) == 10 + 3 * 2


def test_states_that_do_not_fit():
    code = loop.__code__
    offset = offset_of(loop, "FOR_ITER")
    with pytest.raises(InternalError, match="1 deep, not 0"):
        resume_code(code, FrameState(offset, ()))
    with pytest.raises(InternalError, match="no instruction begins there"):
        resume_code(code, FrameState(offset + 1, (True,)))
    with pytest.raises(InternalError, match="prologue"):
        resume_code(code, FrameState(0, ()))
    assert not resumable(code, 0) and resumable(code, offset)

    def generator():
        yield 1

    with pytest.raises(InternalError, match="generator"):
        resume_code(generator.__code__, FrameState(4, ()))


@pytest.mark.skipif("END_FOR" not in opcode.opmap, reason="this CPython's FOR_ITER pops the iterator itself")
def test_never_at_the_end_of_a_loop():
    """CPython never stops at END_FOR: what it pops is not there."""
    ends = [at for _, at, number, _, _ in decode(loop.__code__.co_code) if number == opcode.opmap["END_FOR"]]
    assert len(ends) == 1 and not resumable(loop.__code__, ends[0])


def test_truth_test_in_the_prologue_is_covered():
    """Where jumps want a bool the prologue makes one; what that raises goes to the user's handler."""

    class Odd:
        def __bool__(self):
            raise KeyError("odd")

    def f(a, b):
        try:
            if a < b:
                return "less"
            return "not less"
        except KeyError:
            return "caught"

    made = resume_code(f.__code__, FrameState(offset_of(f, "POP_JUMP_IF_FALSE"), (True,), None))
    run = function_of(made.code, f)
    assert [run(1, 2, value) for value in (True, [], "x", Odd())] == ["less", "not less", "less", "caught"]


# identity and lifetime --------------------------------------------------------------------------------------
def test_made_once():
    state = FrameState(offset_of(loop, "FOR_ITER"), (True,), frozenset({"n", "y", "total"}))
    made = resume_code(loop.__code__, state)
    assert (
        resume_code(loop.__code__, FrameState(state.offset, (True,), frozenset({"total", "y", "n"}))) is made
    )
    assert resume_code(made.code, state) is made  # from a resume code: the original's
    assert resume_code(loop.__code__, FrameState(state.offset, (True,), None)) is not made


def test_equal_code_objects_are_not_mixed_up():
    def make():
        names: dict[str, Any] = {}
        exec("def f(x):\n    return [x, len('a')]", names)
        return names["f"]

    one, two = make(), make()
    assert one.__code__ == two.__code__ and one.__code__ is not two.__code__
    state = FrameState(offset_of(one, "BUILD_LIST"), (True, True), None)
    assert resume_code(one.__code__, state).code is not resume_code(two.__code__, state).code


def test_origin_offset():
    code = loop.__code__
    offset = offset_of(loop, "FOR_ITER")
    made = resume_code(code, FrameState(offset, (True,), None)).code
    length = len(made.co_code) - len(code.co_code)
    assert is_resume_code(made) and not is_resume_code(code)
    assert origin_offset(code, 12) == 12
    assert origin_offset(made, 0) == origin_offset(made, length - 2) == offset
    assert [origin_offset(made, length + at) for at in (0, offset)] == [0, offset]


def test_nothing_keeps_code_alive():
    """Without the garbage collector: an original and its resume codes die with their last user."""
    names: dict[str, Any] = {}
    exec("def f(n):\n    for i in range(n):\n        pass\n    return n", names)
    function = names.pop("f")
    gc.collect()
    gc.disable()
    try:
        offset = offset_of(function, "FOR_ITER")
        made = resume_code(function.__code__, FrameState(offset, (True,), None))
        second = resume_code(made.code, FrameState(offset_of(function, "RETURN_VALUE"), (True,), None))
        original, first, later = (weakref.ref(c) for c in (function.__code__, made.code, second.code))
        del made, second
        assert first() is not None and later() is not None  # cached for the original
        del function
        assert original() is None and first() is None and later() is None
    finally:
        gc.enable()


def test_a_resume_code_outlives_its_original():
    names: dict[str, Any] = {}
    exec("def f(n):\n    for i in range(n):\n        pass\n    return [n, 1]", names)
    function = names.pop("f")
    state = FrameState(offset_of(function, "FOR_ITER"), (True,), None)
    end = FrameState(offset_of(function, "RETURN_VALUE"), (True,), None)
    made = resume_code(function.__code__, state)
    original = weakref.ref(function.__code__)
    del function
    assert original() is None
    second = resume_code(made.code, end)
    assert FunctionType(second.code, {})(0, 1, ["last"]) == ["last"]


def test_resume_point_is_a_value():
    point = ResumePoint((FrameState(4, (True, False), frozenset({"x"})),))
    assert point == ResumePoint((FrameState(4, (True, False), frozenset({"x"})),)) and hash(point)
    assert repr(UNBOUND) == "UNBOUND"


# exceptions -------------------------------------------------------------------------------------------------
def test_resumed_handler_restores_the_caller():
    """After a resumed except clause the exception of the caller's own clause is the handled one again."""

    def f(x):
        try:
            raise KeyError(x)
        except KeyError:
            inside = type(sys.exc_info()[1])
        return inside, type(sys.exc_info()[1])

    frame = begin(f, (1,))
    while not (
        frame.handled and frame.instruction.opname == "LOAD_GLOBAL" and frame.instruction.arg == "type"
    ):
        frame.step()
    while not frame.ir.is_boundary(frame.instruction.index):
        frame.step()
    run, made = continued(frame)
    assert made.params[-1] == "___handled"
    try:
        raise ValueError
    except ValueError:
        assert run() == (KeyError, ValueError)
    assert run() == (KeyError, type(None))


def test_verified_without_effect_on_the_cache():
    code = loop.__code__
    made = resume_code(code, FrameState(offset_of(loop, "FOR_ITER"), (True,), None))
    assert verify(made.code) <= made.code.co_stacksize


def test_instruction_numbers_of_the_resume_code():
    """What a handler of `with` got as the number of the raising instruction counts from the code that runs."""

    def f(manager):
        with manager:
            [].pop()
        return 1

    code = f.__code__
    ir = lift(code)
    region = next(region for region in ir.regions if region.lasti)
    entry = ir.instructions[region.target].offset
    stack = (True,) * (region.depth + 2)
    made = resume_code(code, FrameState(entry, stack, None))
    again = resume_code(made.code, FrameState(entry, stack, None))
    units = [(len(c.co_code) - len(code.co_code)) // 2 for c in (code, made.code, again.code)]
    assert made.code is not again.code
    raised = ValueError("v")
    for resumed, given, wanted in ((made, 20, 20 + units[1]), (again, 20 + units[1], 20 + units[2])):
        values = {f"___stack{region.depth}": given, f"___stack{region.depth + 1}": raised}
        slots = {name: values.get(name) for name in resumed.params}
        frame = Frame(function_of(resumed.code, f), slots)
        while origin_offset(resumed.code, frame.instruction.offset + 2) == entry:
            frame.step()
        assert frame.stack[region.depth :] == [wanted, raised]
