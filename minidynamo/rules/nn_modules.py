"""What nn.Module does itself, as rules: calls with their hooks, attribute access, and the small helpers of containers.

The layers' own `forward` methods are inlined (`trace_rules.INLINED`).
"""

from __future__ import annotations

import weakref

import torch
from torch.nn.modules import module as module_globals

from ..reasons import CALL_ARGUMENTS, OPERATOR_FAILS, UNSUPPORTED_CALL
from ..sources import WeakRefSource
from ..static_access import is_subtype, type_lookup
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.dict_kinds import OrderedDictVariable
from ..variables.dicts import DictVariable, from_names
from ..variables.keys import Key
from ..variables.module_objects import Hooks, ModuleObject
from ..variables.nn_module import ModuleSliceVariable, NNModuleVariable
from ..variables.protocol import known_type
from ..variables.sequences import NONE, ListVariable, SequenceVariable, TupleVariable
from ..variables.tensor import TensorVariable
from ..variables.user_objects import UserObject
from .builtins import Args, items_of, positional, rule

Kwargs = dict[str, VariableTracker]
Module = torch.nn.Module
BACKWARD = ("_backward_hooks", "_backward_pre_hooks")
# Dictionaries of hooks that wrap the backward pass, or run when forward fails: such calls are left to plain Python.
UNFOLLOWED = (*BACKWARD, "_forward_hooks_always_called")


def _module(tx: Tracing, args: Args) -> ModuleObject:
    first = args[0].realize(tx) if args else None
    if not isinstance(first, ModuleObject):
        tx.unsupported(UNSUPPORTED_CALL, name="a method of nn.Module on something that is not followed")
    return first


@rule(Module.__call__)
def _wrapped_call(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    """nn.Module._wrapped_call_impl."""
    module = _module(tx, args)
    compiled = module.getattr(tx, "_compiled_call_impl").realize(tx)
    if compiled.python_type() is not type(None):
        tx.unsupported(UNSUPPORTED_CALL, name=f"{module.type_name()}, on which compile() was called")
    return tx.call(module.getattr(tx, "_call_impl"), args[1:], kwargs)


def is_plain(module: ModuleObject) -> bool:
    """Whether a call of any instance of the class leads here, unless the instance says otherwise. (That it does is guarded by now.)"""
    return (
        isinstance(module, NNModuleVariable)
        and type_lookup(module.cls, "__call__") is Module.__call__
        and type_lookup(module.cls, "_call_impl") is Module._call_impl
        and type_lookup(module.cls, "_compiled_call_impl") is None
    )


@rule(Module._call_impl)
def _call_impl(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    """nn.Module._call_impl: pre-hooks, forward, hooks."""
    module = _module(tx, args)
    args = args[1:]
    if module.has_no_hooks(tx):
        if is_plain(module):
            tx.trace.plain_calls.add(module.cls)
        return tx.call(module.getattr(tx, "forward"), args, kwargs)
    for name in UNFOLLOWED:
        if module.hooks(tx, name) or module.global_hooks(tx, f"_global{name}"):
            tx.unsupported(UNSUPPORTED_CALL, name=f"{module.type_name()} with hooks of the kind {name}")
    before = _hooks(tx, module, "_forward_pre_hooks", ())
    after = _hooks(tx, module, "_forward_hooks", ("_global_forward_hooks_with_kwargs",))
    for hook, with_kwargs in before:
        args, kwargs = _run_before(tx, module, hook, with_kwargs, args, kwargs)
    result = tx.call(module.getattr(tx, "forward"), args, kwargs)
    for hook, with_kwargs in after:
        given = [
            module,
            TupleVariable(list(args)),
            *([from_names(tx, kwargs)] if with_kwargs else []),
            result,
        ]
        changed = tx.call(hook, given, {}).realize(tx)
        result = result if _is_none(changed) else changed
    return result


def _hooks(
    tx: Tracing, module: ModuleObject, name: str, global_kwargs: tuple[str, ...]
) -> list[tuple[VariableTracker, bool]]:
    """(hook, does it take keywords), those of all modules first."""
    everywhere, own = module.global_hooks(tx, f"_global{name}"), module.hooks(tx, name)
    with_kwargs: set[int] = set()
    if everywhere or own:
        named: list[Hooks] = [module.global_hooks(tx, each) for each in global_kwargs]
        named.append(module.hooks(tx, f"{name}_with_kwargs"))
        with_kwargs = {key for hooks in named for key, _ in hooks}
    return [(hook, key in with_kwargs) for key, hook in (*everywhere, *own)]


def _run_before(
    tx: Tracing,
    module: ModuleObject,
    hook: VariableTracker,
    with_kwargs: bool,
    args: Args,
    kwargs: Kwargs,
) -> tuple[Args, Kwargs]:
    """One forward pre-hook: the arguments that it leaves."""
    given: Args = [module, TupleVariable(list(args)), *([from_names(tx, kwargs)] if with_kwargs else [])]
    changed = tx.call(hook, given, {}).realize(tx)
    if _is_none(changed):
        return args, kwargs
    if not with_kwargs and isinstance(changed, TupleVariable):
        return list(changed.items), kwargs
    if not with_kwargs and not issubclass(changed.python_type(), tuple):
        return [changed], kwargs
    if with_kwargs and isinstance(changed, TupleVariable) and len(changed.items) == 2:
        first, second = (item.realize(tx) for item in changed.items)
        if isinstance(first, TupleVariable) and isinstance(second, DictVariable):
            return list(first.items), {str(key.value): second.items[key] for key in second.all_keys(tx)}
    tx.unsupported(CALL_ARGUMENTS, name="a forward pre-hook", detail="what it returns")


def _is_none(value: VariableTracker) -> bool:
    return value.python_type() is type(None)


@rule(Module.__getattr__)
@positional("Module.__getattr__", 2, 2)
def _getattr(tx: Tracing, module: VariableTracker, name: VariableTracker) -> VariableTracker:
    return _module(tx, [module]).registered(tx, _name(tx, name))


@rule(Module.__setattr__)
@positional("Module.__setattr__", 3, 3)
def _setattr(
    tx: Tracing, module: VariableTracker, name: VariableTracker, value: VariableTracker
) -> VariableTracker:
    _module(tx, [module]).assign(tx, _name(tx, name), value)
    return NONE


SLICED = (torch.nn.ModuleList, torch.nn.Sequential)


def _name(tx: Tracing, name: VariableTracker) -> str:
    if not name.is_python_constant() or type(name.as_python_constant()) is not str:
        tx.unsupported(UNSUPPORTED_CALL, name="attribute access with a name that is not known")
    return str(name.as_python_constant())


def _index(tx: Tracing, index: VariableTracker, count: int) -> int:
    """A position as containers of modules take it. An index out of range breaks: plain Python raises."""
    value = index.as_python_constant() if index.is_python_constant() else None
    if type(value) is not int:
        tx.unsupported(UNSUPPORTED_CALL, name="indexing modules with something that is no plain int")
    if not -count <= value < count:
        tx.unsupported(OPERATOR_FAILS, name="indexing modules", error="IndexError")
    return value % count


@rule(torch.nn.ModuleList._get_abs_string_index, torch.nn.ParameterList._get_abs_string_index)
@positional("_get_abs_string_index", 2, 2)
def _get_abs_string_index(tx: Tracing, module: VariableTracker, index: VariableTracker) -> VariableTracker:
    return ConstantVariable(str(_index(tx, index, module.slot_len(tx))))


@rule(torch.nn.ModuleList.__getitem__, torch.nn.Sequential.__getitem__)
@positional("indexing modules", 2, 2)
def _getitem(tx: Tracing, container: VariableTracker, key: VariableTracker) -> VariableTracker:
    """An item, or a new container over a slice (which registers the modules: global hooks would see that)."""
    module = _module(tx, [container])
    modules = module.table(tx, "_modules")
    if modules is None:
        tx.unsupported(UNSUPPORTED_CALL, name="indexing modules before __init__")
    if is_subtype(module.cls, torch.nn.ModuleList) and key.python_type() is not slice:
        name = module.call_method(tx, "_get_abs_string_index", [key], {}).realize(tx)
        found = modules.look_up(tx, Key(tx, name))
        if found is None:
            tx.unsupported(OPERATOR_FAILS, name="indexing modules", error="KeyError")
        return found
    keys = modules.all_keys(tx)
    items = [modules.items[each] for each in keys]
    if key.python_type() is not slice:
        return items[_index(tx, key, len(items))]
    if not key.is_python_constant():
        tx.unsupported(UNSUPPORTED_CALL, name="slicing modules with bounds that are not known")
    at = key.as_python_constant()
    if (
        isinstance(module, NNModuleVariable)
        and module.cls in SLICED
        and not module.global_hooks(tx, "_global_module_registration_hooks")
    ):
        return ModuleSliceVariable(module, key, items[at])
    cls = module.getattr(tx, "__class__")
    if is_subtype(module.cls, torch.nn.ModuleList):
        return tx.call(cls, [ListVariable(items[at])], {})
    return tx.call(cls, [OrderedDictVariable(dict(zip(keys[at], items[at])))], {})


@rule(torch.nn.RNNBase._weights_have_changed)
@positional("_weights_have_changed", 1, 1)
def _weights_have_changed(tx: Tracing, module: VariableTracker) -> VariableTracker:
    """False when each weak reference still leads to the module's weight of that name; else left to plain Python."""
    rnn = _module(tx, [module])
    refs = items_of(tx, "zip", rnn.getattr(tx, "_flat_weight_refs"))
    names = items_of(tx, "zip", rnn.getattr(tx, "_flat_weights_names"))
    same = len(refs) == len(names)
    for ref, name in zip(refs, names):
        known = ref.realize(tx)
        if known.source is None or known.python_type() is not weakref.ref:
            tx.unsupported(UNSUPPORTED_CALL, name="a recurrent layer with weights of another kind")
        weight = rnn.getattr(tx, _name(tx, name.realize(tx))).realize(tx)
        source = WeakRefSource(known.source)
        target = source.read(tx.trace.frame)
        same = same and target is not None and tx.wrap(target, source).realize(tx) is weight
    if not same:
        tx.unsupported(UNSUPPORTED_CALL, name="a recurrent layer whose weights were exchanged")
    return ConstantVariable(False)


def _is_overriding(tx: Tracing, operand: VariableTracker) -> bool:
    """Whether the object's class has a `__torch_function__` of its own. (Tensors that are followed have not.)"""
    operand = operand.realize(tx)
    if isinstance(operand, TensorVariable):
        return False
    cls = known_type(operand)
    if cls is None or type_lookup(cls, "__torch_function__") is not None:
        tx.unsupported(UNSUPPORTED_CALL, name=f"has_torch_function on a {operand.type_name()}")
    if isinstance(operand, UserObject):
        operand.guard_presence(tx, "__torch_function__")
    return False


@rule(torch.overrides.has_torch_function, torch.overrides.has_torch_function_unary)
@positional("has_torch_function", 1, 1)
def _has_torch_function(tx: Tracing, value: VariableTracker) -> VariableTracker:
    operands = items_of(tx, "has_torch_function", value) if isinstance(value, SequenceVariable) else [value]
    return ConstantVariable(any(_is_overriding(tx, each) for each in operands))


@rule(torch.overrides.has_torch_function_variadic)
@positional("has_torch_function_variadic", 0, 99)
def _has_torch_function_variadic(tx: Tracing, *operands: VariableTracker) -> VariableTracker:
    return ConstantVariable(any(_is_overriding(tx, each) for each in operands))


@rule(torch._C._log_api_usage_once)
def _log_api_usage_once(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    """What `Module.__init__` tells torch's own statistics: nothing that a program can see."""
    return NONE


@rule(torch.jit.is_scripting)
@positional("is_scripting", 0, 0)
def _is_scripting(tx: Tracing) -> VariableTracker:
    return ConstantVariable(False)


assert all(hasattr(module_globals, f"_global{name}") for name in UNFOLLOWED)
