"""Code objects that continue another one at one of its instructions.

A resume code is a prologue, written here, before the ORIGINAL bytecode, byte for byte: all jumps are
relative, so it runs at any place. The prologue loads the stack from parameters and jumps to the instruction.
Locals and cells keep their slots (they are the first parameters); only free variables move, by the number of
stack parameters, and only then are their instructions rewritten.
"""

from __future__ import annotations

import opcode
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType
from weakref import ref

from .. import config
from ..exc import InternalError
from .identity import IdentityCache
from .lift import STRIDES, CodeIR, alias_slots, lift, slot_names
from .stackmap import HANDLED, LASTI, stack_maps
from .tables import (
    UNIT,
    ExceptionEntry,
    Position,
    build_exception_table,
    parse_exception_table,
    prefix_line_table,
)
from .verify import decode, verify
from .versions import CURRENT

GENERATORS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
HANDLED_PARAM = "___handled"


class Unbound:
    """The type of UNBOUND."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNBOUND"

    def __reduce__(self) -> str:
        return "UNBOUND"


UNBOUND = Unbound()  # passed to a resume function for a local that is unbound


@dataclass(frozen=True, slots=True)
class FrameState:
    """Where and how to continue.

    offset  byte offset in the ORIGINAL function's code of the instruction to continue at
            (`Instruction.offset`)
    stack   one item for each stack value, bottom first: True for a value, False for NULL
    bound   the locals that are bound; None if all are. Cells always exist.
    """

    offset: int
    stack: tuple[bool, ...] = ()
    bound: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Where to continue a stack of inlined frames, outermost first."""

    frames: tuple[FrameState, ...]


@dataclass(frozen=True, slots=True)
class ResumeCode:
    """`code` and what to pass to its parameters, in order:

    * a name of co_varnames: its value, or UNBOUND if it is not bound; the cell object if it is a cell
    variable;
    * the other cell variables: their cell objects;
    * "___stack{i}": the i-th stack value; instruction numbers are those of the code that stops;
    * "___handled", last, where an exception is being handled: that exception.
    """

    code: CodeType
    params: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Original:
    """All that resume codes are made from; holds no reference to the code object."""

    root: ref[CodeType]
    ir: CodeIR
    maps: tuple[str | None, ...]
    positions: tuple[tuple[int | None, int | None, int | None, int | None], ...]
    raw: bytes
    exceptions: bytes
    lines: bytes
    first_line: int
    consts: tuple[object, ...]
    varnames: tuple[str, ...]
    slots: tuple[str, ...]
    cellvars: tuple[str, ...]
    freevars: tuple[str, ...]
    flags: int
    stacksize: int
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class _Made:
    """What is known about one code object: its original and, for a resume code, its prologue."""

    original: Original
    prologue: int  # bytes; 0 for an ordinary code
    offset: int  # where it continues, in the original
    state: FrameState | None = None  # how it continues; None for an ordinary code
    moved: int = 0  # what its prologue adds to the numbers of instructions that it is given
    resumes: dict[tuple[FrameState, int], ResumeCode] = field(default_factory=dict)


_made: IdentityCache[_Made] = IdentityCache()


def _known(code: CodeType) -> _Made:
    return _made.get(code) or _made.set(code, _Made(_original(code), 0, 0))


def _original(code: CodeType) -> Original:
    if code.co_flags & GENERATORS:
        raise InternalError(f"{code.co_qualname} is a generator or coroutine: there is no resume code for it")
    ir = lift(code)
    return Original(
        root=ref(code),
        ir=ir,
        maps=stack_maps(ir),
        positions=tuple(code.co_positions()),
        raw=code.co_code,
        exceptions=code.co_exceptiontable,
        lines=code.co_linetable,
        first_line=code.co_firstlineno,
        consts=code.co_consts,
        varnames=code.co_varnames,
        slots=slot_names(code),
        cellvars=code.co_cellvars,
        freevars=code.co_freevars,
        flags=code.co_flags,
        stacksize=code.co_stacksize,
        name=f"{code.co_filename}:{code.co_firstlineno} {code.co_qualname}",
    )


def origin_offset(code: CodeType, offset: int) -> int:
    """The byte offset in the original function for `offset` in `code`; the same for an ordinary code.

    The prologue of a resume code stands for the instruction that it continues at.
    """
    made = _made.get(code)
    if made is None:
        return offset
    return made.offset if offset < made.prologue else offset - made.prologue


def is_resume_code(code: CodeType) -> bool:
    """`code` was made by `resume_code`."""
    made = _made.get(code)
    return made is not None and made.prologue > 0


@dataclass(frozen=True, slots=True)
class Entry:
    """What handles an exception that comes up when a resume code is about to continue.

    state   how to go on at that handler. The lowest stack values are those that the resume code was given, then comes `number` if
            it is not None, then the exception.
    number  of the instruction that the resume code continues at
    lasti   stack values that are numbers of instructions: to each `moved` is added
    """

    state: FrameState
    number: int | None
    lasti: frozenset[int]
    moved: int


def handler_at_entry(code: CodeType) -> Entry | None:
    """The handler for where the resume code `code` continues; None if there is none, or if `code` is no resume code."""
    made = _made.get(code)
    if made is None or made.state is None:
        return None
    original = made.original
    index = original.ir.by_offset[made.offset]
    region = original.ir.handler_at(index)
    if region is None:
        return None
    stack = (*made.state.stack[: region.depth], *(True,) * region.lasti, True)
    target = original.ir.instructions[region.target].offset
    kinds = (original.maps[index] or "")[: region.depth]
    return Entry(
        FrameState(target, stack, made.state.bound),
        (made.prologue + made.offset) // UNIT if region.lasti else None,
        frozenset(place for place, kind in enumerate(kinds) if kind == LASTI),
        made.moved,
    )


def resumable(code: CodeType, offset: int) -> bool:
    """Whether `resume_code` can continue at byte `offset` of the ORIGINAL of `code`."""
    original = _known(code).original
    index = original.ir.by_offset.get(offset, -1)
    return index >= 0 and not _obstacle(original, index, offset)


def _obstacle(original: Original, index: int, offset: int) -> str:
    """Why one cannot continue at `offset`, whose first canonical instruction is `index`; "" if one can."""
    if offset <= _entry(original.raw):
        return "it is in the function's own prologue"
    if index < 0 or original.ir.instructions[index].offset != offset:
        return "no instruction begins there"
    if original.maps[index] is None:
        return "nothing leads there"
    name = _opname(original.raw, offset)
    return f"{name} is no place to enter" if name in CURRENT.not_resumable else ""


def _opname(raw: bytes, offset: int) -> str:
    while raw[offset] == opcode.EXTENDED_ARG:
        offset += 2
    return opcode.opname[raw[offset]]


def _entry(raw: bytes) -> int:
    """The offset of RESUME, behind the instructions that set up cells."""
    return next(offset for offset in range(0, len(raw), 2) if raw[offset] == opcode.opmap["RESUME"])


def resume_code(code: CodeType, state: FrameState) -> ResumeCode:
    """The code that continues `code` in `state`, made once for each original (by identity) and state.

    `code` may be a resume code; the result is made from the original all the same. Run it as a function with
    the globals and the closure of `code`'s function. Raises InternalError for a state that does not fit the
    code.
    """
    made = _known(code)
    original = made.original
    index = original.ir.by_offset.get(state.offset, -1)
    obstacle = _obstacle(original, index, state.offset)
    if obstacle:
        raise InternalError(f"{original.name}: cannot continue at byte {state.offset}: {obstacle}")
    stack_map = original.maps[index] or ""
    if len(stack_map) != len(state.stack):
        depths = f"{len(stack_map)} deep, not {len(state.stack)}"
        raise InternalError(f"{original.name}: at byte {state.offset} the stack is {depths}")
    root = original.root()
    holder = made if root is None or root is code else _known(root)
    key = (state, made.prologue if LASTI in stack_map else 0)
    found = holder.resumes.get(key)
    if found is None:
        found = holder.resumes[key] = _build(code, made, state, stack_map)
    return found


def _instruction(name: str, arg: int = 0) -> bytes:
    """One instruction with its prefixes and empty caches."""
    out = bytearray()
    for shift in (24, 16, 8):
        if arg >> shift:
            out += bytes((opcode.EXTENDED_ARG, arg >> shift & 255))
    number = opcode.opmap[name]
    return bytes(out) + bytes((number, arg & 255)) + bytes(STRIDES[number] - 2)


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the slots of a resume code are laid out.

    varnames   its local variables: those of the original, its cells, the stack parameters, padding
    arguments  how many of them are parameters
    body       the original bytecode, its free variables shifted if need be
    moved      free variables are copied to their old slots instead (a shifted slot number would not fit its
               instruction)
    """

    varnames: tuple[str, ...]
    params: tuple[str, ...]
    body: bytes
    moved: bool


def _plan(original: Original, state: FrameState, stack_map: str) -> _Plan:
    fixed = original.slots[: len(original.slots) - len(original.freevars)]
    params = [f"___stack{number}" for number, is_value in enumerate(state.stack) if is_value]
    if HANDLED in stack_map:
        params.append(HANDLED_PARAM)
    names = (*fixed, *params)
    if not params or not original.freevars:
        return _Plan(names, names, original.raw, False)
    body = _shifted(original.raw, len(fixed), len(params))
    if body is not None:
        return _Plan(names, names, body, False)
    padding = [f"___free{number}" for number in range(len(original.freevars) - len(params))]
    return _Plan((*names, *padding), names, original.raw, True)


def _shifted(raw: bytes, first: int, by: int) -> bytes | None:
    """`raw` with slot numbers from `first` on increased; None if one does not fit into its instruction."""
    out = bytearray(raw)
    for begin, offset, number, arg, _ in decode(raw):
        if number in _PAIRS:
            if arg >> 4 >= first or arg & 15 >= first:
                return None
        elif number in _SLOTTED and arg >= first:
            arg += by
            width = (offset - begin) // 2 + 1
            if arg >> 8 * width:
                return None
            for place in range(width):
                out[offset + 1 - 2 * place] = arg >> 8 * place & 255
    return bytes(out)


_PAIRS = frozenset(opcode.opmap[name] for name in CURRENT.slot_pairs)
_SLOTTED = (frozenset(opcode.hasfree) | frozenset(opcode.haslocal)) - _PAIRS


def _build(code: CodeType, made: _Made, state: FrameState, stack_map: str) -> ResumeCode:
    original = made.original
    plan = _plan(original, state, stack_map)
    prologue, consts = b"", original.consts
    while True:  # the prologue holds its own length: once more when that has changed
        length = len(prologue)
        consts = (
            (*original.consts, (length - made.prologue) // UNIT) if LASTI in stack_map else original.consts
        )
        prologue, test = _prologue(original, state, stack_map, plan, len(original.consts))
        if len(prologue) == length:
            break
    entries = [
        ExceptionEntry(
            entry.start + length, entry.end + length, entry.target + length, entry.depth, entry.lasti
        )
        for entry in parse_exception_table(original.exceptions)
    ]
    if test is not None:  # the truth test in the prologue may raise: the instruction's own handler takes it
        covering = [e for e in entries if e.start <= length + state.offset < e.end]
        entries[:0] = [e._replace(start=test, end=length) for e in covering]
    resumed = code.replace(
        co_code=prologue + plan.body,
        co_argcount=len(plan.params),
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_nlocals=len(plan.varnames),
        co_varnames=plan.varnames,
        co_cellvars=original.cellvars,
        co_freevars=original.freevars,
        co_flags=original.flags & ~(CO_VARARGS | CO_VARKEYWORDS),
        co_consts=consts,
        co_stacksize=max(original.stacksize, len(state.stack) + 3),
        co_exceptiontable=build_exception_table(entries),
        co_linetable=prefix_line_table(
            original.lines,
            Position(*original.positions[state.offset // UNIT]),
            length // UNIT,
            original.first_line,
        ),
    )
    if plan.moved:
        alias_slots(resumed, length, original.slots)
    if config.verify:
        verify(resumed)
    _made.set(resumed, _Made(original, length, state.offset, state, (length - made.prologue) // UNIT))
    return ResumeCode(resumed, plan.params)


def _prologue(
    original: Original, state: FrameState, stack_map: str, plan: _Plan, number_const: int
) -> tuple[bytes, int | None]:
    """The prologue, and the offset of the truth test in it if there is one."""
    slots = {name: slot for slot, name in enumerate(plan.varnames)}
    out = bytearray()
    free = len(original.freevars)
    if free:
        out += _instruction("COPY_FREE_VARS", free)
    out += _instruction("RESUME")
    for name in _empty_slots(original, state):
        out += _instruction("DELETE_FAST", slots[name])
    for part in _stack(state, stack_map, slots, number_const):
        out += part
    if plan.moved:
        first = len(original.slots) - free
        for number in range(free):
            out += _instruction(CURRENT.load_cell, len(plan.varnames) + number)
            out += _instruction("STORE_FAST", first + number)
    test = None
    if CURRENT.to_bool is not None and _opname(original.raw, state.offset) in CURRENT.wants_bool:
        test = len(out)
        out += _instruction(CURRENT.to_bool)
    out += _instruction("JUMP_FORWARD", state.offset // UNIT)
    return bytes(out), test


def _empty_slots(original: Original, state: FrameState) -> Iterator[str]:
    """The names whose slots hold nothing: unbound locals, and a cell that the next instructions make."""
    cells = frozenset(original.cellvars)
    if state.bound is not None:
        yield from (name for name in original.varnames if name not in state.bound and name not in cells)
    for _, _, number, arg, _ in decode(original.raw[state.offset :]):
        if number != opcode.opmap["MAKE_CELL"]:
            break
        yield original.slots[arg]


def _stack(state: FrameState, stack_map: str, slots: dict[str, int], number_const: int) -> Iterator[bytes]:
    """Instructions that push the stack, each value leaving its parameter.

    What PUSH_EXC_INFO saved at a handler is the exception that was handled outside of it, so the handlers are
    entered again in order: each with what the next one saved, the innermost with "___handled".
    """
    handlers = [place for place, kind in enumerate(stack_map) if kind == HANDLED]
    saved_by = dict(zip(handlers, handlers[1:], strict=False))
    for place, (is_value, kind) in enumerate(zip(state.stack, stack_map, strict=True)):
        name = f"___stack{place}"
        if kind == HANDLED:
            source = f"___stack{saved_by[place]}" if place in saved_by else HANDLED_PARAM
            yield (
                _instruction("LOAD_FAST", slots[source])
                + _instruction("PUSH_EXC_INFO")
                + _instruction("POP_TOP")
            )
        elif not is_value:
            yield _instruction("PUSH_NULL")
            continue
        else:
            yield _instruction("LOAD_FAST", slots[name])
            if kind == LASTI:
                yield _instruction("LOAD_CONST", number_const)
                yield _instruction("BINARY_OP", 0)
        if is_value:
            yield _instruction("DELETE_FAST", slots[name])
    if handlers:
        yield _instruction("DELETE_FAST", slots[HANDLED_PARAM])
