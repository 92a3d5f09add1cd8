"""Statement values -> a code object.

`flatten` walks the values once, and the `bytecode` package assembles the result.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import CodeType
from typing import Any

import bytecode as bc
from bytecode.instr import InstrLocation

from .. import config
from ..exc import InternalError
from . import expr as x
from .flatten import NO_HOLES, Flattener, Region
from .resume import is_resume_code
from .shapes import Hole, NoShape, Shape, fill
from .statements import run
from .verify import verify

CO_HAS_DOCSTRING = getattr(inspect, "CO_HAS_DOCSTRING", 0)  # from 3.14 on: the first constant is one
KEPT_FLAGS = (
    inspect.CO_OPTIMIZED
    | inspect.CO_NEWLOCALS
    | inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_NESTED
    | CO_HAS_DOCSTRING
)
_Item = bc.Instr | bc.Label | bc.TryBegin | bc.TryEnd


def flatten(code: CodeType, body: x.Body, holes: Mapping[int, Hole] = NO_HOLES) -> bc.Bytecode:
    """The instructions of `body` as the body of a code object with the variables of `code`; `holes` take the place of the
    constants with these ids.

    Raises InternalError for a body that can fall off its end and for values that do not fit `code`.
    """
    f = Flattener(code, holes)
    here, f.location = f.location, InstrLocation(None, None, None, None)
    if not is_resume_code(code):  # whose cells are passed to it
        for name in code.co_cellvars:
            f.emit("MAKE_CELL", bc.CellVar(name))
    if code.co_freevars:
        f.emit("COPY_FREE_VARS", len(code.co_freevars))
    f.location = here
    f.raw("RESUME", 0)
    run(f, body)
    if f.reachable:
        raise InternalError(f"output code of {code.co_qualname} can fall off its end")
    return bc.Bytecode(_with_regions(f.items))


def _with_regions(
    items: list[tuple[bc.Instr | bc.Label, Region | None]],
) -> list[_Item]:
    """Put TryBegin and TryEnd around the runs of instructions of one region (they do not nest)."""
    out: list[_Item] = []
    current: Region | None = None
    begin: bc.TryBegin | None = None
    for item, region in items:
        if region is not current and isinstance(item, bc.Instr):
            if begin is not None:
                out.append(bc.TryEnd(begin))
                begin = None
            if region is not None:
                begin = bc.TryBegin(region.handler, region.lasti, region.depth)
                out.append(begin)
            current = region
        out.append(item)
    if begin is not None:
        out.append(bc.TryEnd(begin))
    return out


def assemble(code: CodeType, body: x.Body, *, name: str | None = None) -> CodeType:
    """A code object that runs `body` with the signature, variables, name and place in the source of `code`.

    Arguments, locals and free variables keep their slots; a Local that `code` does not have becomes a further
    local. Cell variables are made into cells first. `name` replaces co_name. The result is verified; raises
    InternalError. Bodies of one shape are assembled once.
    """
    try:
        shape = Shape(code, body)
    except NoShape:
        return _assemble(code, flatten(code, body), name or code.co_name)
    shared = _shared.get(shape.key)
    if shared is None:
        shared = _assemble(code, flatten(code, body, shape.holes()), code.co_name)
        if len(_shared) == SHAPES:
            del _shared[next(iter(_shared))]
        _shared[shape.key] = shared
    made = fill(shared, code, shape.constants, name or code.co_name)
    if config.verify:
        anew = _assemble(code, flatten(code, body, shape.holes()), code.co_name)
        if fill(anew, code, shape.constants, made.co_name) != made:
            raise InternalError(f"{code.co_qualname}: code of one shape is not what is assembled anew")
    return made


SHAPES = 512  # whose code is kept: the last ones that were met first
_shared: dict[tuple[Any, ...], CodeType] = {}


def _assemble(code: CodeType, made: bc.Bytecode, name: str) -> CodeType:
    made.name, made.qualname, made.filename = name, code.co_qualname, code.co_filename
    made.first_lineno = code.co_firstlineno
    made.argcount, made.posonlyargcount = code.co_argcount, code.co_posonlyargcount
    made.kwonlyargcount = code.co_kwonlyargcount
    made.argnames = list(code.co_varnames)
    made.cellvars, made.freevars = list(code.co_cellvars), list(code.co_freevars)
    first = code.co_consts[0] if code.co_consts else None
    made.docstring = first if isinstance(first, str) else None
    made.flags = bc.CompilerFlags(code.co_flags & KEPT_FLAGS)
    assembled = made.to_code(stacksize=1 << 16, compute_exception_stack_depths=False)
    return assembled.replace(co_stacksize=verify(assembled))
