"""A call inside a function that hands on its `*args` and `**kwargs`, written with what that function was called with."""

from __future__ import annotations

import ast
import dis
import inspect
import types


def stars(code: types.CodeType) -> tuple[str, str]:
    """The names of `*args` and `**kwargs` among the parameters of `code`; "" for one that it has not."""
    names = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    args = names.pop(0) if code.co_flags & inspect.CO_VARARGS else ""
    return args, names[0] if code.co_flags & inspect.CO_VARKEYWORDS else ""


def hands_on(code: types.CodeType, call: ast.Call) -> bool:
    """`call`, in the body of `code`, passes on the `*args` or `**kwargs` of that function as they came in."""
    args, kwargs = stars(code)
    handed = any(_is_star(a, args) for a in call.args), any(_is_more(k, kwargs) for k in call.keywords)
    return any(handed) and not _changed(code, args, kwargs)


def _changed(code: types.CodeType, args: str, kwargs: str) -> bool:
    """Either name is assigned or captured in `code`, or the dict is used for something else too, which may change it."""
    if {args, kwargs} & set(code.co_cellvars):
        return True
    uses = 0
    for inst in dis.get_instructions(code):
        named = inst.argval if isinstance(inst.argval, tuple) else (inst.argval,)
        if "_FAST" in inst.opname and any(name and name in named for name in (args, kwargs)):
            if "STORE" in inst.opname or "DELETE" in inst.opname:
                return True
            uses += named.count(kwargs) if kwargs else 0
    return uses > 1


def filled_in(code: types.CodeType, inner: ast.Call, outer: ast.Call, bound: bool) -> ast.Call | None:
    """`inner` with the arguments of `outer`, the call of `code`, in place of its stars. `bound`: `outer` passes the first parameter
    by the object before the dot. None where the arguments that `code` itself takes cannot be told from the others.

    The argument nodes are those of the two calls, so that they keep their lines and columns.
    """
    args, kwargs = stars(code)
    own = code.co_argcount - bound
    if any(isinstance(a, ast.Starred) for a in outer.args[:own]):
        return None
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    more = [k for k in outer.keywords if k.arg is None or k.arg not in taken]
    positional: list[ast.expr] = []
    for argument in inner.args:
        positional += outer.args[own:] if _is_star(argument, args) else [argument]
    keywords: list[ast.keyword] = []
    for keyword in inner.keywords:
        keywords += more if _is_more(keyword, kwargs) else [keyword]
    return ast.copy_location(ast.Call(inner.func, positional, keywords), inner)


def _is_star(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Starred) and isinstance(node.value, ast.Name) and node.value.id == name


def _is_more(keyword: ast.keyword, name: str) -> bool:
    return keyword.arg is None and isinstance(keyword.value, ast.Name) and keyword.value.id == name
