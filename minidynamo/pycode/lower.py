"""Statement values -> a code object.

`flatten` walks the values once, and the `assembler` makes the code object.
"""

from __future__ import annotations

import inspect
from types import CodeType

from .. import config
from ..exc import InternalError
from . import expr as x
from .assembler import Item, build
from .flatten import Flattener
from .resume import is_resume_code
from .statements import run
from .tables import Position
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


def flatten(code: CodeType, body: x.Body) -> list[Item]:
    """The instructions of `body` as the body of a code object with the variables of `code`.

    Raises InternalError for a body that can fall off its end and for values that do not fit `code`.
    """
    f = Flattener(code)
    here, f.location = f.location, Position()
    if not is_resume_code(code):  # whose cells are passed to it
        for name in code.co_cellvars:
            f.emit("MAKE_CELL", name)
    if code.co_freevars:
        f.emit("COPY_FREE_VARS", len(code.co_freevars))
    f.location = here
    f.raw("RESUME", 0)
    run(f, body)
    if f.reachable:
        raise InternalError(f"output code of {code.co_qualname} can fall off its end")
    return f.items


def assemble(code: CodeType, body: x.Body, *, name: str | None = None) -> CodeType:
    """A code object that runs `body` with the signature, variables, name and place in the source of `code`.

    Arguments, locals and free variables keep their slots; a Local that `code` does not have becomes a further
    local. Cell variables are made into cells first. `name` replaces co_name. Under `config.verify` the result is verified;
    raises InternalError.
    """
    first = code.co_consts[0] if code.co_consts else None
    items = flatten(code, body)
    made = build(
        code,
        items,
        name=name or code.co_name,
        flags=code.co_flags & KEPT_FLAGS,
        first_const=first if isinstance(first, str) else None,  # a string there is the docstring
        check=verify if config.verify else None,
    )
    if config.verify:
        from .read_back import read_back  # what only a check needs is not imported otherwise

        read_back(made, items)
    return made
