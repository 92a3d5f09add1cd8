"""Builtins with keywords, and `functools.reduce`."""

from __future__ import annotations


def reduce(function, iterable, *initial):
    iterator = iter(iterable)
    if initial:
        total = initial[0]
    else:
        for first in iterator:
            total = first
            break
        else:
            raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        total = function(total, item)
    return total


def extreme(values, key, default, name, is_better):
    """CPython: min_max. `default` is a tuple of at most one value. The first of equal ones wins."""
    iterator = iter(values)
    for first in iterator:
        best = first
        break
    else:
        if default:
            return default[0]
        raise ValueError(name)
    best_key = best if key is None else key(best)
    for item in iterator:
        item_key = item if key is None else key(item)
        if is_better(item_key, best_key):
            best, best_key = item, item_key
    return best


def call_until(function, sentinel):
    """`iter(function, sentinel)`."""
    while True:
        item = function()
        if item == sentinel:
            return
        yield item
