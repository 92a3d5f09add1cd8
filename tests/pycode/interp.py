"""A small interpreter of the canonical instructions: one handler each, no version checks.

It is the oracle that brings a function to any instruction, with the stack that CPython would have there. The
handlers say in Python what the rows of `minidynamo.pycode.canon` say in words.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from functools import cache
from inspect import signature
from types import CellType, FunctionType
from typing import Any

from minidynamo.pycode.instruction import Instruction
from minidynamo.pycode.lift import lift


class Null:
    def __repr__(self) -> str:
        return "NULL"


NULL = Null()
HANDLERS: dict[str, Callable[[Frame, Any], None]] = {}


class Returned(BaseException):
    """RETURN_VALUE was reached."""

    def __init__(self, value: Any) -> None:
        self.value = value


def op(*names: str) -> Callable[[Any], Any]:
    def register(handler: Any) -> Any:
        for name in names:
            assert name not in HANDLERS
            HANDLERS[name] = handler
        return handler

    return register


class Frame:
    """A function being interpreted. `slots` maps names to values, or to cell objects for cell and free
    variables."""

    def __init__(self, function: FunctionType, slots: dict[str, Any]) -> None:
        self.function, self.slots = function, slots
        self.ir = lift(function.__code__)
        self.stack: list[Any] = []
        self.handled: list[BaseException] = []  # exceptions being handled, innermost last
        self.seen: set[int] = set()  # ids of exceptions that went through this frame
        self.kept: list[BaseException] = []  # keeps those ids theirs
        self.next = 0

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        return self.stack.pop()

    def popn(self, count: int) -> list[Any]:
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def jump(self, instruction: Instruction) -> None:
        self.next = instruction.target.index

    @property
    def instruction(self) -> Instruction:
        """The instruction that comes next."""
        return self.ir.instructions[self.next]

    def step(self) -> None:
        """Run one instruction; raises Returned, or what leaves the function."""
        instruction = self.instruction
        self.next += 1
        try:
            if self.handled and instruction.opname not in ("RETURN_VALUE", "POP_EXCEPT", "RERAISE"):
                self._while_handling(instruction)
            else:
                HANDLERS[instruction.opname](self, instruction)
        except Returned:
            raise
        except BaseException as error:
            self._unwind(instruction, error)

    def _while_handling(self, instruction: Instruction) -> None:
        handled = self.handled[-1]
        kept = handled.__traceback__, handled.__context__
        try:
            raise handled
        except BaseException as error:
            assert error is handled
            handled.__traceback__, handled.__context__ = kept
            HANDLERS[instruction.opname](self, instruction)

    def _unwind(self, instruction: Instruction, error: BaseException) -> None:
        self.seen.add(id(error))
        self.kept.append(error)
        region = self.ir.handler_at(instruction.index)
        if region is None:
            raise error
        del self.stack[region.depth :]
        if region.lasti:
            self.push(instruction.offset // 2)
        self.push(error)
        self.next = region.target

    def run(self) -> Any:
        try:
            while True:
                self.step()
        except Returned as returned:
            return returned.value


# stack, constants
@op("POP_TOP")
def _(f, i):
    f.pop()


@op("COPY")
def _(f, i):
    f.push(f.stack[-i.arg])


@op("SWAP")
def _(f, i):
    f.stack[-1], f.stack[-i.arg] = f.stack[-i.arg], f.stack[-1]


@op("PUSH_NULL")
def _(f, i):
    f.push(NULL)


@op("LOAD_CONST")
def _(f, i):
    f.push(i.arg)


# variables
@op("LOAD_FAST")
def _(f, i):
    if i.arg not in f.slots:
        raise UnboundLocalError(
            f"cannot access local variable '{i.arg}' where it is not associated with a value"
        )
    f.push(f.slots[i.arg])


@op("LOAD_FAST_AND_CLEAR")
def _(f, i):
    f.push(f.slots.pop(i.arg, NULL))


@op("STORE_FAST")
def _(f, i):
    value = f.pop()
    if value is NULL:
        f.slots.pop(i.arg, None)
    else:
        f.slots[i.arg] = value


@op("DELETE_FAST")
def _(f, i):
    if i.arg not in f.slots:
        raise UnboundLocalError(
            f"cannot access local variable '{i.arg}' where it is not associated with a value"
        )
    del f.slots[i.arg]


@op("LOAD_GLOBAL")
def _(f, i):
    names = f.function.__globals__
    if i.arg in names:
        f.push(names[i.arg])
    elif hasattr(builtins, i.arg):
        f.push(getattr(builtins, i.arg))
    else:
        raise NameError(f"name '{i.arg}' is not defined")


@op("STORE_GLOBAL")
def _(f, i):
    f.function.__globals__[i.arg] = f.pop()


@op("DELETE_GLOBAL")
def _(f, i):
    del f.function.__globals__[i.arg]


@op("MAKE_CELL")
def _(f, i):
    f.slots[i.arg] = CellType(f.slots[i.arg]) if i.arg in f.slots else CellType()


@op("COPY_FREE_VARS")
def _(f, i):
    f.slots.update(zip(f.function.__code__.co_freevars, f.function.__closure__, strict=True))


def contents(f: Frame, name: str) -> CellType:
    cell = f.slots[name]
    if cell != CellType():  # it is not empty
        return cell
    where = "where it is not associated with a value"
    if name in f.function.__code__.co_freevars:
        raise NameError(f"cannot access free variable '{name}' {where} in enclosing scope")
    raise UnboundLocalError(f"cannot access local variable '{name}' {where}")


@op("LOAD_DEREF")
def _(f, i):
    f.push(contents(f, i.arg).cell_contents)


@op("STORE_DEREF")
def _(f, i):
    f.slots[i.arg].cell_contents = f.pop()


@op("DELETE_DEREF")
def _(f, i):
    del contents(f, i.arg).cell_contents


@op("LOAD_CLOSURE")
def _(f, i):
    f.push(f.slots[i.arg])


@op("LOAD_BUILD_CLASS")
def _(f, i):
    f.push(builtins.__build_class__)


# attributes, items, operators
@op("LOAD_ATTR")
def _(f, i):
    f.push(getattr(f.pop(), i.arg))


@op("STORE_ATTR")
def _(f, i):
    value, target = f.popn(2)
    setattr(target, i.arg, value)


@op("DELETE_ATTR")
def _(f, i):
    delattr(f.pop(), i.arg)


@op("LOAD_SUPER_ATTR")
def _(f, i):
    function, cls, self = f.popn(3)
    f.push(getattr(function(cls, self), i.arg))


@op("LOAD_SPECIAL")
def _(f, i):
    value = f.pop()
    if not hasattr(type(value), i.arg):
        kind = type(value).__name__
        raise TypeError(
            f"'{kind}' object does not support the context manager protocol (missed {i.arg} method)"
        )
    f.push(getattr(type(value), i.arg).__get__(value))


@op("BINARY_SUBSCR")
def _(f, i):
    base, key = f.popn(2)
    f.push(base[key])


@op("STORE_SUBSCR")
def _(f, i):
    value, base, key = f.popn(3)
    base[key] = value


@op("DELETE_SUBSCR")
def _(f, i):
    base, key = f.popn(2)
    del base[key]


UNARY = {
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_INVERT": operator.invert,
    "UNARY_NOT": operator.not_,
    "UNARY_POSITIVE": operator.pos,
    "GET_ITER": iter,
    "LIST_TO_TUPLE": tuple,
    "FORMAT_SIMPLE": format,
}


@op(*UNARY)
def _(f, i):
    f.push(UNARY[i.opname](f.pop()))


_names = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
BINARY = {symbol: getattr(operator, f"__{name}__") for symbol, name in _names.items()}
BINARY |= {f"{symbol}=": getattr(operator, f"__i{name}__") for symbol, name in _names.items()}
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


@op("BINARY_OP")
def _(f, i):
    left, right = f.popn(2)
    f.push(BINARY[i.arg](left, right))


@op("COMPARE_OP")
def _(f, i):
    left, right = f.popn(2)
    f.push(COMPARE[i.arg](left, right))


@op("IS_OP")
def _(f, i):
    left, right = f.popn(2)
    f.push((left is right) ^ bool(i.arg))


@op("CONTAINS_OP")
def _(f, i):
    left, right = f.popn(2)
    f.push((left in right) ^ bool(i.arg))


# control
@op("JUMP")
def _(f, i):
    f.jump(i)


TESTS = {
    "POP_JUMP_IF_TRUE": bool,
    "POP_JUMP_IF_FALSE": operator.not_,
    "POP_JUMP_IF_NONE": lambda value: value is None,
    "POP_JUMP_IF_NOT_NONE": lambda value: value is not None,
}


@op(*TESTS)
def _(f, i):
    if TESTS[i.opname](f.pop()):
        f.jump(i)


@op("FOR_ITER")
def _(f, i):
    try:
        f.push(next(f.stack[-1]))
    except StopIteration:
        f.jump(i)


@op("RETURN_VALUE")
def _(f, i):
    raise Returned(f.pop())


# building
@op("BUILD_TUPLE")
def _(f, i):
    f.push(tuple(f.popn(i.arg)))


@op("BUILD_LIST")
def _(f, i):
    f.push(f.popn(i.arg))


@op("BUILD_SET")
def _(f, i):
    f.push(set(f.popn(i.arg)))


@op("BUILD_MAP")
def _(f, i):
    flat = f.popn(2 * i.arg)
    f.push(dict(zip(flat[::2], flat[1::2], strict=True)))


@op("BUILD_CONST_KEY_MAP")
def _(f, i):
    keys = f.pop()
    f.push(dict(zip(keys, f.popn(i.arg), strict=True)))


@op("BUILD_STRING")
def _(f, i):
    f.push("".join(f.popn(i.arg)))


@op("BUILD_SLICE")
def _(f, i):
    f.push(slice(*f.popn(i.arg)))


@op("LIST_APPEND")
def _(f, i):
    value = f.pop()
    f.stack[-i.arg].append(value)


@op("LIST_EXTEND")
def _(f, i):
    value = f.pop()
    try:
        iterator = iter(value)
    except TypeError:
        raise TypeError(f"Value after * must be an iterable, not {type(value).__name__}") from None
    f.stack[-i.arg].extend(iterator)


@op("SET_ADD")
def _(f, i):
    value = f.pop()
    f.stack[-i.arg].add(value)


@op("SET_UPDATE", "DICT_UPDATE")
def _(f, i):
    value = f.pop()
    f.stack[-i.arg].update(value)


@op("DICT_MERGE")
def _(f, i):
    value = f.pop()
    target = f.stack[-i.arg]
    called = next(v for v in reversed(f.stack[: -i.arg - 1]) if v is not NULL).__qualname__
    if not hasattr(value, "keys"):
        raise TypeError(f"{called}() argument after ** must be a mapping, not {type(value).__name__}")
    for key in value:
        if key in target:
            raise TypeError(f"{called}() got multiple values for keyword argument '{key}'")
    target.update(value)


@op("MAP_ADD")
def _(f, i):
    key, value = f.popn(2)
    f.stack[-i.arg][key] = value


@cache
def unpacker(targets: str) -> Callable[[Any], list[Any]]:
    """What unpacks a value into such targets, with CPython's own words when it fails."""
    names: dict[str, Any] = {}
    values = targets.replace("*", "")
    exec(f"def unpack(value):\n    [{targets}] = value\n    return [{values}]", names)
    function: Callable[[Any], list[Any]] = names["unpack"]
    return function


@op("UNPACK_SEQUENCE")
def _(f, i):
    targets = ", ".join(f"t{number}" for number in range(i.arg))
    f.stack.extend(reversed(unpacker(targets)(f.pop())))


@op("UNPACK_EX")
def _(f, i):
    before, after = i.arg & 255, i.arg >> 8
    names = [f"t{number}" for number in range(before + after)]
    targets = ", ".join([*names[:before], "*rest", *names[before:]])
    f.stack.extend(reversed(unpacker(targets)(f.pop())))


@op("GET_LEN")
def _(f, i):
    f.push(len(f.stack[-1]))


@op("CONVERT_VALUE")
def _(f, i):
    f.push((None, str, repr, ascii)[i.arg](f.pop()))


@op("FORMAT_WITH_SPEC")
def _(f, i):
    value, spec = f.popn(2)
    f.push(format(value, spec))


# calls and functions
def call(f: Frame, first: Any, second: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if first is NULL:
        function = second
    elif second is NULL:
        function = first
    else:
        function, args = first, [second, *args]
    if function is super and not args:  # looks at the caller's frame, which is not there
        code = f.function.__code__
        value = f.slots[code.co_varnames[0]]
        return super(
            contents(f, "__class__").cell_contents,
            value.cell_contents if code.co_varnames[0] in code.co_cellvars else value,
        )
    return function(*args, **kwargs)


@op("CALL")
def _(f, i):
    first, second, *args = f.popn(i.arg + 2)
    f.push(call(f, first, second, args, {}))


@op("CALL_KW")
def _(f, i):
    names = f.pop()
    first, second, *args = f.popn(i.arg + 2)
    split = len(args) - len(names)
    f.push(call(f, first, second, args[:split], dict(zip(names, args[split:], strict=True))))


@op("CALL_FUNCTION_EX")
def _(f, i):
    kwargs = f.pop() if i.arg else NULL
    first, second, args = f.popn(3)
    function = second if first is NULL else first
    f.push(function(*args) if kwargs is NULL else function(*args, **kwargs))


class Making:
    """A function whose closure is still to come."""

    def __init__(self, code: Any) -> None:
        self.code, self.attributes = code, {}


def finish(f: Frame, making: Making) -> FunctionType:
    attributes = making.attributes
    function = FunctionType(making.code, f.function.__globals__, None, attributes.get(1), attributes.get(8))
    function.__kwdefaults__ = attributes.get(2)
    annotations = attributes.get(4)
    if isinstance(annotations, tuple):
        annotations = dict(zip(annotations[::2], annotations[1::2], strict=True))
    if annotations:
        function.__annotations__ = annotations
    if 16 in attributes:
        function.__annotate__ = attributes[16]
    return function


@op("MAKE_FUNCTION")
def _(f, i):
    making = Making(f.pop())
    following = f.instruction
    f.push(making if following.opname == "SET_FUNCTION_ATTRIBUTE" else finish(f, making))


@op("SET_FUNCTION_ATTRIBUTE")
def _(f, i):
    making, value = f.pop(), f.pop()
    making.attributes[i.arg] = value
    f.push(making if f.instruction.opname == "SET_FUNCTION_ATTRIBUTE" else finish(f, making))


# with and exceptions
@op("BEFORE_WITH")
def _(f, i):
    manager = f.pop()
    kind = type(manager)
    if not hasattr(kind, "__enter__"):
        raise TypeError(f"'{kind.__name__}' object does not support the context manager protocol")
    leave = kind.__exit__.__get__(manager)
    entered = kind.__enter__(manager)
    f.push(leave)
    f.push(entered)


@op("WITH_EXCEPT_START")
def _(f, i):
    error = f.stack[-1]
    leave = f.stack[-i.arg]
    args = [type(error), error, error.__traceback__]
    if i.arg == 5 and f.stack[-4] is not NULL:
        args.insert(0, f.stack[-4])
    f.push(leave(*args))


@op("PUSH_EXC_INFO")
def _(f, i):
    error = f.pop()
    f.push(f.handled[-1] if f.handled else None)
    f.handled.append(error)
    f.push(error)


@op("POP_EXCEPT")
def _(f, i):
    saved = f.pop()
    f.handled.pop()
    assert saved is (f.handled[-1] if f.handled else None)


@op("CHECK_EXC_MATCH")
def _(f, i):
    wanted = f.pop()
    for one in wanted if isinstance(wanted, tuple) else (wanted,):
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise TypeError("catching classes that do not inherit from BaseException is not allowed")
    f.push(isinstance(f.stack[-1], wanted))


@op("CHECK_EG_MATCH")
def _(f, i):
    group, wanted = f.popn(2)
    if isinstance(group, wanted):
        match, rest = group if isinstance(group, BaseExceptionGroup) else ExceptionGroup("", [group]), None
    elif isinstance(group, BaseExceptionGroup):
        match, rest = group.split(wanted)
    else:
        match, rest = None, group
    f.push(rest)
    f.push(match)
    if match is not None:
        f.handled[-1] = match


@op("RERAISE")
def _(f, i):
    error = f.pop()
    raise error


@op("RAISE_VARARGS")
def _(f, i):
    values = f.popn(i.arg)
    if not values:
        if not f.handled:
            raise RuntimeError("No active exception to reraise")
        raise f.handled[-1]
    if i.arg == 2:
        raise values[0] from values[1]
    raise values[0]


def leaves(error: BaseException) -> list[BaseException]:
    return (
        [x for e in error.exceptions for x in leaves(e)] if isinstance(error, BaseExceptionGroup) else [error]
    )


def prep_reraise_star(original: BaseException, errors: list[BaseException | None]) -> BaseException | None:
    """What an except* statement raises at its end: the unhandled rest of the group and what its bodies
    raised."""
    left = [error for error in errors if error is not None]
    if not left:
        return None
    if not isinstance(original, BaseExceptionGroup):
        return left[0]
    known = {id(x) for x in leaves(original)}
    again = {id(x) for e in left if {id(x) for x in leaves(e)} <= known for x in leaves(e)}
    raised = [e for e in left if not {id(x) for x in leaves(e)} <= known]
    rest = (
        original.split(lambda e: not isinstance(e, BaseExceptionGroup) and id(e) in again)[0]
        if again
        else None
    )
    if not raised:
        return rest
    return BaseExceptionGroup("", [*raised, rest] if rest is not None else raised)


@op("CALL_INTRINSIC_2")
def _(f, i):
    assert i.arg == "INTRINSIC_PREP_RERAISE_STAR", i.arg
    original, errors = f.popn(2)
    f.push(prep_reraise_star(original, errors))


# imports
@op("IMPORT_NAME")
def _(f, i):
    level, names = f.popn(2)
    f.push(__import__(i.arg, f.function.__globals__, None, names, level))


@op("IMPORT_FROM")
def _(f, i):
    module = f.stack[-1]
    if not hasattr(module, i.arg):
        place = getattr(module, "__file__", "unknown location")
        raise ImportError(f"cannot import name {i.arg!r} from {module.__name__!r} ({place})")
    f.push(getattr(module, i.arg))


# match statement
@op("MATCH_MAPPING")
def _(f, i):
    f.push(isinstance(f.stack[-1], dict))


@op("MATCH_SEQUENCE")
def _(f, i):
    f.push(isinstance(f.stack[-1], (list, tuple, range)))


@op("MATCH_KEYS")
def _(f, i):
    subject, keys = f.stack[-2:]
    f.push(tuple(subject[key] for key in keys) if all(key in subject for key in keys) else None)


@op("MATCH_CLASS")
def _(f, i):
    subject, cls, names = f.popn(3)
    if not isinstance(subject, cls):
        f.push(None)
        return
    if cls in (int, str, float, bool, list, tuple, dict) and i.arg == 1:
        positional = [subject]
    else:
        wanted = cls.__match_args__[: i.arg] if i.arg else ()
        positional = [getattr(subject, name) for name in wanted]
    if all(hasattr(subject, name) for name in names):
        f.push((*positional, *(getattr(subject, name) for name in names)))
    else:
        f.push(None)


def begin(function: FunctionType, args: tuple[Any, ...]) -> Frame:
    """A frame at the function's first instruction."""
    bound = signature(function).bind(*args)
    bound.apply_defaults()
    return Frame(function, dict(bound.arguments))
