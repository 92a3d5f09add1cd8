"""What the native machine does, instruction by instruction, in Python: the reference that tests and
`config.guards = "both"` compare it with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidynamo import exc, static_access
from minidynamo.guards import py_leaves
from minidynamo.guards.lower import OPS, Program
from minidynamo.literals import Ref, same
from minidynamo.sources import FrameValues

Run = Callable[[Any, Any], Any]


class _Machine:
    """The registers of one run, and what its loads read from. `check` is a CheckFn."""

    def __init__(self, check: Any, args: tuple[Any, ...], globals_: Any, closure: Any) -> None:
        self.names = check.names
        self.namespace: Any = check.namespace
        self.args = args
        self.globals: Any = globals_
        self.closure: Any = closure
        self.registers: list[Any] = []

    def scope(self) -> dict[str, Any]:
        values = dict(zip(self.names, self.args, strict=True))
        return self.namespace | values | {"___globals": self.globals, "___closure": self.closure}

    def step(self, name: str, source: int, operand: Any) -> Any:
        if name in _FRAME_OPS:
            return _FRAME_OPS[name](self, operand)
        value = self.registers[source]
        if name in _PAIR_OPS:
            return _PAIR_OPS[name](value, self.registers[operand])
        return _REGISTER_OPS[name](value, operand)


def _key(operand: Any) -> Any:
    if type(operand) is tuple:
        return tuple(map(_key, operand))
    return operand.resolve() if type(operand) is Ref else operand


# Instruction -> f(value of the input register, operand). Loads give the value, checks the verdict.
_REGISTER_OPS: dict[str, Run] = {
    "LOAD_ATTR": static_access.static_attr,
    "LOAD_MEMBER": getattr,
    "LOAD_ITEM": lambda value, key: value[_key(key)],
    "LOAD_DICT_ITEM": lambda value, key: static_access.dict_item(value, _key(key)),
    "LOAD_DICT_KEY": static_access.dict_key,
    "LOAD_TYPE": lambda value, _: type(value),
    "LOAD_WEAKREF": lambda value, _: py_leaves.weakref_target(value),
    "LOAD_CODE": lambda value, _: value.__code__,
    "LOAD_DEFAULT": lambda value, index: value.__defaults__[index],
    "LOAD_KWDEFAULT": lambda value, name: value.__kwdefaults__[name],
    "LOAD_CELL": lambda value, index: value.__closure__[index].cell_contents,
    "CHECK_TYPE_ID": py_leaves.check_type_id,
    "CHECK_OBJ_ID": py_leaves.check_obj_id,
    "CHECK_CODE_ID": py_leaves.check_code_id,
    "CHECK_IS_CONST": lambda value, constant: value is constant,
    "CHECK_EQUAL": lambda value, constant: value == constant,
    "CHECK_SAME": same,
    "CHECK_LENGTH": lambda value, count: static_access.static_len(value) == count,
    "CHECK_ATTR": static_access.has_static_attr,
    "CHECK_NO_ATTR": lambda value, name: not static_access.has_static_attr(value, name),
    "CHECK_PRESENT": lambda value, _: True,
    "CHECK_OWN": py_leaves.has_own,
    "CHECK_NO_OWN": lambda value, name: not py_leaves.has_own(value, name),
    "CHECK_LACKS": py_leaves.lacks_members,
    "CHECK_EMPTY": py_leaves.empty_members,
    "CHECK_KEY": lambda value, key: static_access.dict_has(value, _key(key)),
    "CHECK_NO_KEY": lambda value, key: not static_access.dict_has(value, _key(key)),
    "CHECK_DICT_KEYS": py_leaves.check_dict_keys,
    "CHECK_SET_HAS": lambda value, element: py_leaves.set_has(value, _key(element)),
    "CHECK_SET_LACKS": lambda value, element: not py_leaves.set_has(value, _key(element)),
    "CHECK_SET_ITEMS": py_leaves.check_set_items,
    "CHECK_SET_ORDER": py_leaves.check_set_order,
    "CHECK_WEAKREF": lambda value, _: py_leaves.weakref_alive(value),
    "CHECK_ITERATOR": lambda value, count: py_leaves.iterator_len(value) == count,
    "CHECK_TENSOR": lambda value, spec: py_leaves.check_tensors(value, *spec),
}
# Instruction -> f(machine, operand), for those without an input register.
_FRAME_OPS: dict[str, Callable[[_Machine, Any], Any]] = {
    "LOAD_LOCAL": lambda m, index: m.args[index],
    "LOAD_GLOBALS": lambda m, _: m.globals,
    "LOAD_GLOBAL": lambda m, name: m.globals[name],
    "LOAD_MODULES": lambda m, _: m.namespace["___modules"],
    "LOAD_BUILTIN": lambda m, name: m.namespace["___builtins"][name],
    "LOAD_CLOSURE": lambda m, index: m.closure[index].cell_contents,
    "CHECK_STATE": lambda m, spec: py_leaves.check_global_state(*spec),
    "CHECK_NO_GLOBAL": lambda m, name: name not in m.globals,
    "CHECK_DISTINCT": lambda m, registers: _distinct(m, registers),
    "CHECK_PY": lambda m, text: eval(text, m.scope()),
}
# Instruction -> f(one register, the other).
_PAIR_OPS: dict[str, Run] = {
    "CHECK_IS": lambda value, other: value is other,
    "CHECK_IS_NOT": lambda value, other: value is not other,
}


def _distinct(machine: _Machine, operand: tuple[int, ...]) -> bool:
    count, *registers = operand
    values = tuple(machine.registers[register] for register in registers)
    return py_leaves.distinct(values[:count], values[count:])


_NAMES = {op.opcode: op.name for op in OPS.values()}


def run(program: Program, check: Any, args: tuple[Any, ...], globals_: Any, closure: Any) -> bool:
    """The verdict of a program on flat argument values. An instruction that raises has failed."""
    machine = _Machine(check, args, globals_, closure)
    for opcode, source, operand in program.code:
        name = _NAMES[opcode]
        try:
            result = machine.step(name, source, operand)
        except Exception:  # as for the text: a guard that raises is a failed guard
            return False
        if name.startswith("LOAD_"):
            machine.registers.append(result)
        elif not result:
            return False
    return True


def run_program(program: Program, check: Any, frame: FrameValues) -> bool:
    """`run` on a frame."""
    args = tuple(frame.locals[name] for name in check.names)
    return run(program, check, args, frame.globals, frame.closure)


disagreements: list[str] = []


def witness(check: Any, program: Program) -> Callable[..., None]:
    """For `config.guards = "both"` and a CheckFn: called with the native verdict and the arguments of each run, it runs text and
    reference machine and raises InternalError when the three differ.

    The cache counts an exception as a failed guard, so every difference is also kept in `disagreements`.
    """

    def compare(native: bool, *args: Any) -> None:
        if not check.validity.valid:
            return  # whatever the guards say, the entry is dead
        *values, globals_, closure = args
        by_text, by_program = check.holds(*args), run(program, check, tuple(values), globals_, closure)
        if not native == by_text == by_program:
            disagreements.append(
                f"text {by_text}, program {by_program}, native {native}:\n{check.source_text}"
            )
            raise exc.InternalError(f"guard text and guard program disagree: {disagreements[-1]}")

    return compare
