"""Lifting: every opcode has a rule, spelling changes and stack layout does not."""

from __future__ import annotations

import dis
import gc
import opcode
import time
import weakref
from types import CodeType
from typing import Any

import pytest

from minidynamo.exc import InternalError, Unsupported
from minidynamo.pycode import lift as lift_module
from minidynamo.pycode.canon import CANON
from minidynamo.pycode.lift import CodeIR, lift
from minidynamo.pycode.stackmap import stack_maps
from minidynamo.pycode.verify import stack_depths
from minidynamo.pycode.versions import CURRENT
from tests.pycode.corpus import CASES
from tests.pycode.interp import begin
from tests.pycode.outcome import fresh, outcome
from tests.pycode.resuming import MACHINERY
from tests.pycode.stdlib import everything, nested, sample


def view(function: Any) -> list[str]:
    """The canonical instructions as text."""
    return [str(instruction) for instruction in lift(function.__code__).instructions]


def test_every_opcode_has_a_rule():
    for name in opcode.opmap:
        assert (name in CURRENT.rules) != (name in CURRENT.internal), name
    assert set(CURRENT.rules) | CURRENT.internal <= set(opcode.opmap)


def test_tables_name_canonical_instructions():
    assert set(CURRENT.emit) <= set(CANON)
    assert set(CURRENT.exhausted) | set(CURRENT.exhausted.values()) <= set(CANON)


def test_no_rule():
    rules, number = lift_module.RULES, opcode.opmap["POP_TOP"]
    kept, rules[number] = rules[number], None
    try:
        with pytest.raises(InternalError, match="no lift rule for POP_TOP"):
            lift(compile("f()", "<test>", "exec"))
    finally:
        rules[number] = kept


def test_spelling():
    def f(x):
        return x.a.b(x[0], k=-x) + 1

    assert view(f)[:4] == ["LOAD_FAST 'x'", "LOAD_ATTR 'a'", "LOAD_ATTR 'b'", "PUSH_NULL"]
    tail = ["LOAD_FAST 'x'", "UNARY_NEGATIVE", "LOAD_CONST ('k',)", "CALL_KW 2"]
    tail += ["LOAD_CONST 1", "BINARY_OP '+'", "RETURN_VALUE"]
    assert view(f)[-len(tail) :] == tail


def test_arguments_are_canonical():
    def f(x, y):
        global g
        g = x is not y, x not in y, x < y, f"{x!r}"
        x += y

        def inner(a: int = x) -> None:
            return y

        return inner

    wanted = {
        "IS_OP 1", "CONTAINS_OP 1", "COMPARE_OP '<'", "CONVERT_VALUE 2", "FORMAT_SIMPLE", "STORE_GLOBAL 'g'",
        "BINARY_OP '+='", "LOAD_DEREF 'y'", "LOAD_CLOSURE 'y'", "MAKE_CELL 'y'", "MAKE_FUNCTION",
        "SET_FUNCTION_ATTRIBUTE 8", "SET_FUNCTION_ATTRIBUTE 1",
    }  # fmt: skip
    assert wanted <= set(view(f))


def test_free_variables():
    one = 1

    def f():
        return lambda: one

    assert view(f)[0] == "COPY_FREE_VARS 1"
    assert "LOAD_CLOSURE 'one'" in view(f)


def test_loop_ends_at_a_pop():
    def f(items):
        for item in items:
            print(item)
        return 1

    ir = lift(f.__code__)
    (loop,) = [i for i in ir.instructions if i.opname == "FOR_ITER"]
    assert loop.target.opname == "POP_TOP" and loop.target.is_jump_target
    assert loop.arg is None and str(loop) == f"FOR_ITER to {loop.target.index}"


def test_lines():
    def f(x):
        y = x
        return (
            y
        )  # fmt: skip

    first = f.__code__.co_firstlineno
    ir = lift(f.__code__)
    starts = [(i.starts_line - first, i.opname) for i in ir.instructions if i.starts_line]
    assert starts == [(1, "LOAD_FAST"), (3, "LOAD_FAST"), (2, "RETURN_VALUE")]
    assert [ir.line_of(i.index) - first for i in ir.instructions] == [1, 1, 3, 2]
    assert ir.positions(f.__code__, 2)[0] == first + 3


def test_regions():
    def f(x):
        try:
            return x()
        except KeyError:
            return 2

    ir = lift(f.__code__)
    (call,) = [i for i in ir.instructions if i.opname == "CALL"]
    region = ir.handler_at(call.index)
    assert ir.instructions[region.target].opname == "PUSH_EXC_INFO" and (region.depth, region.lasti) == (
        0,
        False,
    )
    assert ir.instructions[region.target].is_jump_target
    assert ir.handler_at(0) is None or region.start == 0
    assert ir.handler_at(len(ir.instructions) - 1) is None


def test_offsets():
    """Every original instruction leads to a canonical one that begins there or further on."""
    for code in nested(compile("for i in x:\n    f(i, k=1)\nelse:\n    pass\nif x: y()", "<test>", "exec")):
        ir = lift(code)
        for instruction in ir.instructions:
            assert ir.instructions[instruction.index] is instruction
            if instruction.offset >= 0:
                assert ir.by_offset[instruction.offset] <= instruction.index
        boundaries = [i.offset for i in ir.instructions if ir.is_boundary(i.index)]
        assert boundaries == sorted(set(boundaries))


def test_ambiguous_name():
    """CPython 3.12+ gives a captured comprehension variable and a free variable of one name two slots."""
    source = (
        "def outer():\n    x = 1\n    def f():\n        return [lambda: x for x in 'ab'], x\n    return f"
    )
    codes = {code.co_name: code for code in nested(compile(source, "<test>", "exec"))}
    code = codes["f"]
    if "x" in code.co_cellvars and "x" in code.co_freevars:
        with pytest.raises(Unsupported, match="rename"):
            lift(code)
    else:
        assert lift(code).instructions


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_interpreted_like_run(function, inputs):
    """The canonical instructions, interpreted, do what the function does."""
    for args in inputs:
        expected = outcome(function, fresh(args), MACHINERY)
        got = outcome(lambda *a: begin(function, a).run(), fresh(args), MACHINERY)
        assert (got.result, got.args) == (expected.result, expected.args)


END_FOR = opcode.opmap.get("END_FOR") if "END_FOR" in CURRENT.not_resumable else None


def check_depths(code: CodeType) -> tuple[int, int]:
    """The canonical stack is as deep as CPython's at the beginning of every instruction.

    Returns how many instructions that were, and how many only CPython reaches: a region that covers nothing
    but a no-op has a handler to which no canonical instruction leads.
    """
    ir = lift(code)
    maps = stack_maps(ir)
    checked = unreached = 0
    for offset, depth in stack_depths(code).items():
        index = ir.by_offset[offset]
        if index == len(maps) or ir.instructions[index].offset != offset or code.co_code[offset] == END_FOR:
            continue  # a no-op; END_FOR counts a value that is never there
        stack = maps[index]
        if stack is None:
            unreached += 1
            continue
        assert len(stack) == depth, (code.co_filename, code.co_qualname, offset, ir.instructions[index])
        checked += 1
    return checked, unreached


def liftable(code: CodeType) -> bool:
    try:
        lift(code)
    except Unsupported:
        return False
    return True


def test_depths_of_a_sample():
    checked, unreached = map(sum, zip(*map(check_depths, sample()), strict=True))
    assert checked > 50_000 and not unreached


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_depths_of_the_whole_library():
    unsupported = checked = unreached = 0
    for code in everything():
        if liftable(code):
            ours, others = check_depths(code)
            checked, unreached = checked + ours, unreached + others
        else:
            unsupported += 1
    assert checked > 500_000 and unreached < 50 and unsupported < 10


def test_cost():
    """At most 3 us of CPU an instruction the first time (best of some), a look-up afterwards."""
    codes = [code for code in sample() if len(code.co_code) > 400][:60]
    for code in codes:
        code.co_code  # noqa: B018  made on first use, by CPython
    gc.disable()
    try:
        best = min(_lift_time(codes) for _ in range(5))
    finally:
        gc.enable()
    assert best < 3e-6
    code = codes[0]
    assert lift(code) is lift(code)


def _lift_time(codes: list[CodeType]) -> float:
    start = time.thread_time()
    count = sum(len(lift_module._lift(code).instructions) for code in codes)
    return (time.thread_time() - start) / count


def test_cached_by_identity():
    one, two = (compile("x = 1", "<test>", "exec") for _ in range(2))
    assert one == two and one is not two
    assert lift(one) is lift(one) and lift(one) is not lift(two)


def test_holds_no_code():
    names: dict[str, Any] = {}
    exec("def f(x):\n    return [x for _ in 'ab']", names)
    function = names.pop("f")
    gc.disable()
    try:
        ir = lift(function.__code__)
        ir.positions(function.__code__, 0)
        gone = weakref.ref(function.__code__)
        del function
        assert gone() is None
        assert isinstance(ir, CodeIR)
    finally:
        gc.enable()


def test_agrees_with_dis_on_targets():
    """Jump targets and lines are those that `dis` finds."""
    for code in sample()[:300]:
        ir = lift(code)
        targets = {i.argval for i in dis.get_instructions(code) if i.opcode in dis.hasjrel + dis.hasjabs}
        for target in targets:
            assert ir.instructions[ir.by_offset[target]].is_jump_target
        starts = dict(dis.findlinestarts(code))
        for instruction in ir.instructions:
            if instruction.starts_line is not None:
                assert instruction.starts_line in starts.values()
