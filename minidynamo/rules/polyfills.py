"""Builtins written in C that are traced by inlining plain Python of the same meaning (`minidynamo.polyfills`)."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from typing import Any

from ..polyfills import builtins_, itertools_
from ..reasons import UNSUPPORTED_CALL
from ..variables.base import Tracing, VariableTracker
from ..variables.constant import ConstantVariable
from ..variables.functions import BuiltinVariable
from ..variables.generators import GeneratorVariable
from ..variables.polyfills import PolyfillVariable
from ..variables.sequences import NONE, TupleVariable
from .builtins import Args, Rule, rule

Kwargs = dict[str, VariableTracker]
ITERTOOLS = """
    count cycle accumulate compress takewhile dropwhile filterfalse starmap pairwise islice zip_longest product
    combinations combinations_with_replacement permutations groupby chain batched
""".split()


def inlined(fn: Any, tp: type | None = None) -> Rule:
    """The rule that inlines `fn`; an iterator that it makes is of type `tp` for the program."""

    def call(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
        made = tx.inline(PolyfillVariable(fn), list(args), dict(kwargs))
        if tp is not None and isinstance(made, GeneratorVariable):
            made.tp = tp
        return made

    call.__qualname__ = fn.__qualname__
    return call


def with_counts(made: Rule, name: str, after: int) -> Rule:
    """Arguments after the first `after`, and keywords, are numbers of something: other values than ints and None are left to plain
    Python, which asks them for `__index__`."""

    def call(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
        for value in (*args[after:], *kwargs.values()):
            value = value.realize(tx)
            known = value.as_python_constant() if value.is_python_constant() else value
            if type(known) not in (int, bool, type(None)):
                tx.unsupported(UNSUPPORTED_CALL, name=f"{name} with these arguments")
        return made(tx, args, kwargs)

    call.__qualname__ = made.__qualname__
    return call


COUNTS = {"islice": 1, "combinations": 1, "combinations_with_replacement": 1, "permutations": 1, "batched": 1}


for _name in ITERTOOLS:
    _real = getattr(itertools, _name, None)
    if _real is not None:
        _made = inlined(getattr(itertools_, _name), _real)
        if _name in COUNTS:
            _made = with_counts(_made, _name, COUNTS[_name])
        elif _name == "product":
            _made = with_counts(_made, _name, sys.maxsize)
        rule(_real)(_made)
rule(itertools.chain.from_iterable)(inlined(itertools_.chain_from_iterable, itertools.chain))
rule(functools.reduce)(inlined(builtins_.reduce))
_TEE: Any = type(itertools.tee(())[0])


@rule(itertools.repeat)
def _repeat(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    made = inlined(itertools_.repeat_times if "times" in kwargs else itertools_.repeat, itertools.repeat)
    return with_counts(made, "repeat", 1)(tx, args, kwargs)


@rule(itertools.tee)
def _tee(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
    made = with_counts(inlined(itertools_.tee), "tee", 1)(tx, args, kwargs)
    for each in made.items if isinstance(made, TupleVariable) else ():
        if isinstance(each, GeneratorVariable):
            each.tp = _TEE
    return made


def _error_of(fn: Any) -> str:
    """What `fn` says of an empty tuple: the words are not the same in every Python."""
    try:
        fn(())
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{fn.__name__}(()) has a value")


def extreme(fn: Any) -> Rule:
    """`min` and `max`: of one iterable or of several arguments, with key and default."""
    is_better = BuiltinVariable(operator.gt if fn is max else operator.lt, None)
    of_nothing = _error_of(fn)

    def call(tx: Tracing, args: Args, kwargs: Kwargs) -> VariableTracker:
        if not args or not kwargs.keys() <= {"key", "default"} or len(args) > 1 and "default" in kwargs:
            tx.unsupported(UNSUPPORTED_CALL, name=f"{fn.__name__} with these arguments")
        values = args[0] if len(args) == 1 else TupleVariable(list(args))
        default = TupleVariable([kwargs["default"]] if "default" in kwargs else [])
        given = [values, kwargs.get("key", NONE), default, ConstantVariable(of_nothing), is_better]
        return tx.inline(PolyfillVariable(builtins_.extreme), given, {})

    return call


def until(tx: Tracing, function: VariableTracker, sentinel: VariableTracker) -> VariableTracker:
    """`iter(function, sentinel)`."""
    made = tx.inline(PolyfillVariable(builtins_.call_until), [function, sentinel], {})
    if isinstance(made, GeneratorVariable):
        made.tp = type(iter(int, 1))
    return made
