"""The root frame of a captured module call (decision 24).

`Module.__call__` has one code object for the whole process: entries of all modules would meet there. So a module is called by a
function `call(module, *args, **kwargs)` with a code object of its own for each `forward`, which carries that one's name and place.
"""

from __future__ import annotations

import types
from typing import Any

from .identity import IdentityCache
from .tables import Position, build_line_table


def _call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    return self(*args, **kwargs)


_by_forward: IdentityCache[types.CodeType] = IdentityCache()
_made: IdentityCache[bool] = IdentityCache()


def module_call_code(forward: types.CodeType) -> types.CodeType:
    """The code of a function that calls its first argument with the others; one per `forward` code object."""
    made = _by_forward.get(forward)
    if made is None:
        template = _call.__code__
        line = forward.co_firstlineno
        made = template.replace(
            co_name=forward.co_name,
            co_qualname=forward.co_qualname,
            co_filename=forward.co_filename,
            co_firstlineno=line,
            co_linetable=build_line_table([(Position(line), len(template.co_code) // 2)], line),
        )
        _by_forward.set(forward, made)
        _made.set(made, True)
    return made


def is_module_call(code: types.CodeType) -> bool:
    """`code` was made by `module_call_code`."""
    return _made.get(code) is not None
