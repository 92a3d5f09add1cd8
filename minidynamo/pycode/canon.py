"""The canonical instruction set: one row an instruction, the same on every supported CPython.

Names and meanings follow CPython; where the versions differ the row's text says which meaning holds. NULL on
the stack is explicit (PUSH_NULL) and the depth of the stack at the beginning of every original instruction is
CPython's own. Effects are the change of the stack's depth, as a number or as a function of the argument;
`jump_effect` is that of the taken branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Effect = int | Callable[[Any], int]

# What `Instruction.arg` holds, per kind.
ARG_KINDS = {
    "none": "no argument",
    "int": "a count, a depth or flag bits",
    "const": "the constant itself",
    "name": "a global, attribute or module name",
    "local": "the name of a local variable's slot",
    "cell": "the name of a cell or free variable",
    "op": "an operator symbol or the name of a special operation",
    "jump": "none; `target` holds the instruction",
}


@dataclass(frozen=True, slots=True)
class CanonOp:
    """A row: `stack_effect` on falling through, `jump_effect` on jumping (None if it never jumps)."""

    name: str
    arg_kind: str
    stack_effect: Effect
    jump_effect: Effect | None
    doc: str
    opcode: int

    def effect(self, arg: Any, jump: bool = False) -> int:
        """The change of depth for argument `arg`."""
        effect = self.jump_effect if jump else self.stack_effect
        if effect is None:
            raise ValueError(f"{self.name} does not jump")
        return effect if isinstance(effect, int) else effect(arg)


CANON: dict[str, CanonOp] = {}


def _row(name: str, arg_kind: str, effect: Effect, doc: str, jump: Effect | None = None) -> None:
    if name in CANON:
        raise ValueError(f"duplicate canonical instruction {name}")
    if arg_kind not in ARG_KINDS:
        raise ValueError(f"{name}: unknown argument kind {arg_kind}")
    CANON[name] = CanonOp(name, arg_kind, effect, jump, doc, len(CANON))


def _items_to_one(count: int) -> int:
    return 1 - count


# stack
_row("POP_TOP", "none", -1, "drop the top")
_row("COPY", "int", 1, "push the arg-th value from the top (1 is the top)")
_row("SWAP", "int", 0, "exchange the top with the arg-th value from the top")
_row("PUSH_NULL", "none", 1, "push NULL")
_row("LOAD_CONST", "const", 1, "push the constant")
# local variables
_row("LOAD_FAST", "local", 1, "push a local; unbound: UnboundLocalError")
_row(
    "LOAD_FAST_AND_CLEAR",
    "local",
    1,
    "push what the slot holds (a value, a cell, NULL if unbound) and make it unbound",
)
_row("STORE_FAST", "local", -1, "pop into the slot; NULL makes it unbound")
_row("DELETE_FAST", "local", 0, "make it unbound; UnboundLocalError if it is")
# globals and names
_row("LOAD_GLOBAL", "name", 1, "push a global, else a builtin")
_row("STORE_GLOBAL", "name", -1, "pop into a global")
_row("DELETE_GLOBAL", "name", 0, "delete a global")
_row("LOAD_NAME", "name", 1, "push a name of the class or module namespace, else a global, else a builtin")
_row("STORE_NAME", "name", -1, "pop into the namespace")
_row("DELETE_NAME", "name", 0, "delete from the namespace")
_row("LOAD_LOCALS", "none", 1, "push the namespace")
_row("LOAD_BUILD_CLASS", "none", 1, "push __build_class__")
_row("SETUP_ANNOTATIONS", "none", 0, "make __annotations__ in the namespace if it is missing")
_row("LOAD_FROM_DICT_OR_DEREF", "cell", 0, "mapping -> mapping[name], else the cell's content")
_row("LOAD_FROM_DICT_OR_GLOBALS", "name", 0, "mapping -> mapping[name], else a global, else a builtin")
# cells
_row("LOAD_DEREF", "cell", 1, "push a cell's content; empty: NameError")
_row("STORE_DEREF", "cell", -1, "pop into a cell")
_row("DELETE_DEREF", "cell", 0, "empty a cell; NameError if it is")
_row("LOAD_CLOSURE", "cell", 1, "push the cell itself")
_row("MAKE_CELL", "cell", 0, "put a new cell into the slot, holding what the slot held")
_row("COPY_FREE_VARS", "int", 0, "copy the function's arg free variables into their slots")
# attributes and items
_row("LOAD_ATTR", "name", 0, "x -> x.name")
_row("STORE_ATTR", "name", -2, "value, x -> ; x.name = value")
_row("DELETE_ATTR", "name", -1, "x -> ; del x.name")
_row("LOAD_SUPER_ATTR", "name", -2, "super, class, self -> super(class, self).name")
_row("LOAD_SPECIAL", "op", 0, "x -> type(x)'s special method (name is the arg), bound")
_row("BINARY_SUBSCR", "none", -1, "x, key -> x[key]")
_row("STORE_SUBSCR", "none", -3, "value, x, key -> ; x[key] = value")
_row("DELETE_SUBSCR", "none", -2, "x, key -> ; del x[key]")
# operators
_row("UNARY_NEGATIVE", "none", 0, "x -> -x")
_row("UNARY_INVERT", "none", 0, "x -> ~x")
_row("UNARY_NOT", "none", 0, "x -> not x")
_row("UNARY_POSITIVE", "none", 0, "x -> +x")
_row("BINARY_OP", "op", -1, "x, y -> x op y; the symbol ends in = for an in-place operation")
_row("COMPARE_OP", "op", -1, "x, y -> x op y for < <= == != > >=")
_row("IS_OP", "int", -1, "x, y -> x is y; is not if arg")
_row("CONTAINS_OP", "int", -1, "x, y -> x in y; not in if arg")
# control
_row("JUMP", "jump", 0, "jump; never falls through", 0)
_row("POP_JUMP_IF_TRUE", "jump", -1, "pop; jump if true", -1)
_row("POP_JUMP_IF_FALSE", "jump", -1, "pop; jump if false", -1)
_row("POP_JUMP_IF_NONE", "jump", -1, "pop; jump if None", -1)
_row("POP_JUMP_IF_NOT_NONE", "jump", -1, "pop; jump if not None", -1)
_row("FOR_ITER", "jump", 1, "push the iterator's next value; at its end leave it and jump to a POP_TOP", 0)
_row("GET_ITER", "none", 0, "x -> iter(x)")
_row("RETURN_VALUE", "none", -1, "return the top")
# building
_row("BUILD_TUPLE", "int", _items_to_one, "arg values -> tuple")
_row("BUILD_LIST", "int", _items_to_one, "arg values -> list")
_row("BUILD_SET", "int", _items_to_one, "arg values -> set")
_row("BUILD_MAP", "int", lambda n: 1 - 2 * n, "arg pairs of key, value -> dict")
_row("BUILD_CONST_KEY_MAP", "int", lambda n: -n, "arg values, tuple of keys -> dict")
_row("BUILD_STRING", "int", _items_to_one, "arg strings -> joined")
_row("BUILD_SLICE", "int", _items_to_one, "2 or 3 values -> slice")
_row("BUILD_TEMPLATE", "none", -1, "strings, interpolations -> template string")
_row(
    "BUILD_INTERPOLATION",
    "int",
    lambda flags: -1 - (flags & 1),
    "value, text[, format if arg & 1] -> interpolation; conversion arg >> 2",
)
_row("LIST_APPEND", "int", -1, "pop, append to the list that is then arg-th from the top")
_row("LIST_EXTEND", "int", -1, "pop, extend that list")
_row("SET_ADD", "int", -1, "pop, add to that set")
_row("SET_UPDATE", "int", -1, "pop, update that set")
_row("MAP_ADD", "int", -2, "key, value -> ; into that dict")
_row("DICT_UPDATE", "int", -1, "pop, update that dict")
_row("DICT_MERGE", "int", -1, "pop, update that dict; TypeError on a duplicate key (call with **)")
_row("LIST_TO_TUPLE", "none", 0, "list -> tuple")
_row("UNPACK_SEQUENCE", "int", lambda n: n - 1, "iterable -> arg values, the first one on top")
_row(
    "UNPACK_EX",
    "int",
    lambda n: (n & 255) + (n >> 8),
    "iterable -> arg & 255 values, list, arg >> 8 values, the first one on top",
)
_row("GET_LEN", "none", 1, "x -> x, len(x)")
# strings
_row("CONVERT_VALUE", "int", 0, "x -> str(x) (1), repr(x) (2), ascii(x) (3)")
_row("FORMAT_SIMPLE", "none", 0, "x -> format(x)")
_row("FORMAT_WITH_SPEC", "none", -1, "x, spec -> format(x, spec)")
# calls and functions
_row(
    "CALL",
    "int",
    lambda n: -1 - n,
    "a, b, arg values -> result; whichever of a, b is NULL the other is called, if none is: a(b, ...)",
)
_row("CALL_KW", "int", lambda n: -2 - n, "a, b, arg values, tuple of the last ones' names -> result")
_row(
    "CALL_FUNCTION_EX",
    "int",
    lambda kw: -2 - kw,
    "a, b, iterable[, mapping if arg] -> result; mapping may be NULL",
)
_row("CALL_INTRINSIC_1", "op", 0, "x -> result of the intrinsic named by arg")
_row("CALL_INTRINSIC_2", "op", -1, "x, y -> result of the intrinsic named by arg")
_row("MAKE_FUNCTION", "none", 0, "code -> function")
_row(
    "SET_FUNCTION_ATTRIBUTE",
    "int",
    -1,
    "value, function -> function; 1 defaults 2 kwdefaults 4 annotations 8 closure 16 annotate",
)
# with and exceptions
_row("BEFORE_WITH", "none", 1, "manager -> bound __exit__, result of __enter__()")
_row(
    "WITH_EXCEPT_START",
    "int",
    1,
    "push exit(type, e, traceback): e on top, exit the arg-th from there (with a self or NULL if arg is 5)",
)
_row("PUSH_EXC_INFO", "none", 1, "e -> previous handled exception, e; e is being handled now")
_row("POP_EXCEPT", "none", -1, "pop the exception that is being handled from here on")
_row("CHECK_EXC_MATCH", "none", 0, "e, type -> e, does it match")
_row("CHECK_EG_MATCH", "none", 0, "group, type -> rest or None, match or None")
_row(
    "RERAISE",
    "int",
    -1,
    "raise the top again; arg != 0: the instruction number at that depth is where it was raised",
)
_row("RAISE_VARARGS", "int", lambda n: -n, "raise; raise x; raise x from y")
# imports
_row("IMPORT_NAME", "name", -1, "level, fromlist -> module")
_row("IMPORT_FROM", "name", 1, "module -> module, module.name")
# match statement
_row("MATCH_CLASS", "int", -2, "subject, type, names -> tuple of attributes or None; arg positional ones")
_row("MATCH_MAPPING", "none", 1, "x -> x, is it a mapping")
_row("MATCH_SEQUENCE", "none", 1, "x -> x, is it a sequence")
_row("MATCH_KEYS", "none", 1, "x, keys -> x, keys, tuple of values or None")
# generators and coroutines
_row("RETURN_GENERATOR", "none", 1, "return a generator of this frame; resumed: the sent value is pushed")
_row("YIELD_VALUE", "none", 0, "yield the top; resumed: the sent value replaces it")
_row(
    "SEND",
    "jump",
    0,
    "receiver, value -> receiver, yielded; at its end: receiver, result and jump to an END_SEND",
    0,
)
_row("END_SEND", "none", -1, "receiver, result -> result")
_row("CLEANUP_THROW", "none", -1, "receiver, sent, e -> None, value of a StopIteration; else e is raised")
_row("GET_YIELD_FROM_ITER", "none", 0, "x -> iterator for yield from")
_row("GET_AWAITABLE", "int", 0, "x -> its awaitable iterator")
_row("GET_AITER", "none", 0, "x -> aiter(x)")
_row("GET_ANEXT", "none", 1, "x -> x, awaitable of the next value")
_row("END_ASYNC_FOR", "none", -2, "async iterator, e -> ; StopAsyncIteration ends the loop, else e is raised")
_row("BEFORE_ASYNC_WITH", "none", 1, "manager -> bound __aexit__, result of __aenter__()")
_row("ASYNC_GEN_WRAP", "none", 0, "x -> x wrapped as the value of an asynchronous generator")

# Instructions after which the next one does not run.
TERMINATORS = frozenset({"JUMP", "RETURN_VALUE", "RERAISE", "RAISE_VARARGS"})
JUMPS = frozenset(name for name, row in CANON.items() if row.jump_effect is not None)
