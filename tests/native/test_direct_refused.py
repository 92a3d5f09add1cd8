"""Direct entries that are malformed, or do not fit their entry: ValueError when the entry is added."""

from __future__ import annotations

import sys

import pytest

OUTPUT = ("output", 0)


def nested(depth):
    recipe = OUTPUT
    for _ in range(depth - 1):
        recipe = ("tuple", (recipe,))
    return recipe


def doubled(depth):
    recipe = OUTPUT
    for _ in range(depth):
        recipe = ("list", (recipe, recipe))
    return recipe


@pytest.mark.parametrize(
    ("inputs", "recipe", "message"),
    [
        ([0], OUTPUT, "the inputs must be a tuple, not list"),
        ((0, 1.0), OUTPUT, "the index of an argument must be int, not float"),
        ((True,), OUTPUT, "the index of an argument must be int, not bool"),
        ((0, 2), OUTPUT, "argument 2 does not exist, there are 2"),
        ((-1,), OUTPUT, "argument -1 does not exist, there are 2"),
        ((10**5000,), OUTPUT, f"argument {sys.maxsize} does not exist, there are 2"),
        ((0,), ("output", 1), "output 1 does not exist, there are 1"),
        ((0,), ("output", "0"), "the index of an output must be int, not str"),
        ((0,), ("argument", 2), "argument 2 does not exist, there are 2"),
        ((0,), ("argument", None), "the index of an argument must be int, not NoneType"),
        ((0,), ("tuple", [OUTPUT]), "the items of a tuple must be a tuple of recipes, not list"),
        ((0,), ("list", 5), "the items of a list must be a tuple of recipes, not int"),
        ((0,), ("set", (OUTPUT,)), "a recipe must be"),
        ((0,), ("output",), "a recipe must be"),
        ((0,), ("output", 0, 0), "a recipe must be"),
        ((0,), ["output", 0], "a recipe must be"),
        ((0,), (0, 0), "a recipe must be"),
        ((0,), None, "a recipe must be"),
        ((0,), ("tuple", (("constant", []), ("tuple", (("constant", {}), ("no", 1))))), "a recipe must be"),
        ((0,), nested(101), "the recipe is too large"),
        ((0,), doubled(60), "the recipe is too large"),
    ],
)
def test_malformed_recipes_are_refused(kit, inputs, recipe, message):
    f = kit.define("def f(a, b): return a")
    handle = kit.C.EntryHandle(len, 1)
    with pytest.raises(ValueError, match=message) as caught:
        kit.add(
            f,
            kit.define("def f(a, b): return 0"),
            handles=(handle,),
            rerunnable=True,
            direct=(handle, inputs, recipe),
        )
    assert str(caught.value).startswith("cache entry: malformed `direct`: ") and "\n" not in str(caught.value)
    assert kit.C.cache_entries(f.__code__) == kit.key.entries == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (5, r"None or a tuple \(handle, inputs, recipe\), not int"),
        ((1, 2), r"a tuple \(handle, inputs, recipe\), not a tuple of 2"),
        ((len, (), OUTPUT), "its handle must be one of `handles` and a graph"),
        ("other", "its handle must be one of `handles` and a graph"),
        ("no graph", "its handle must be one of `handles` and a graph"),
    ],
)
def test_what_is_no_direct_entry_is_refused(kit, spec, message):
    f = kit.define("def f(a): return a")
    handles = {"other": kit.C.EntryHandle(len, 1), "no graph": kit.C.EntryHandle(len)}
    mine = kit.C.EntryHandle(len, 1)
    if isinstance(spec, str):
        spec = (handles[spec], (0,), OUTPUT)
    new = kit.define("def f(a): return 0")
    with pytest.raises(ValueError, match=message):
        kit.add(f, new, handles=(mine, handles["no graph"]), rerunnable=True, direct=spec)
    assert kit.key.entries == []


@pytest.mark.parametrize(("has_break", "rerunnable"), [(True, True), (False, False)])
def test_a_direct_entry_has_no_break_and_may_run_again(kit, has_break, rerunnable):
    f = kit.define("def f(a): return a")
    handle = kit.C.EntryHandle(len, 1)
    rest = {"handles": (handle,), "has_break": has_break, "rerunnable": rerunnable}
    with pytest.raises(ValueError, match="with `direct` it must be rerunnable and have no break"):
        kit.add(f, kit.define("def f(a): return 0"), direct=(handle, (0,), OUTPUT), **rest)


def test_an_attribute_that_raises_is_not_swallowed(kit):
    class Raising(kit.Guarded):
        @property
        def direct(self):
            raise ZeroDivisionError

        @direct.setter
        def direct(self, value):
            pass

    f = kit.define("def f(a): return a")
    with pytest.raises(ZeroDivisionError):
        kit.C.add_entry(f.__code__, kit.ctx, Raising(kit.define("def f(a): return 0").__code__))
