"""optimize, compile, disable, reset, explain, cache_entries as a user meets them."""

import copy
import functools
import pickle

import pytest
import torch

import minidynamo
from minidynamo.exc import InvalidBackend, Unsupported
from minidynamo.testing import CompileCounter, EagerAndRecordGraphs

X = torch.arange(4.0)


def add_one(x):
    return x + 1


def breaks(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 2


# --- decoration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: minidynamo.optimize("eagr"), InvalidBackend, "did you mean 'eager'"),
        (lambda: minidynamo.optimize(3), InvalidBackend, "not int"),
        (lambda: minidynamo.optimize("eager", mode="fast"), InvalidBackend, "takes no mode="),
        (lambda: minidynamo.optimize("eager", options={"a": 1}), InvalidBackend, "takes no options="),
        (lambda: minidynamo.optimize("eager", nopython=1), TypeError, "nopython takes a bool"),
        (lambda: minidynamo.optimize("eager", dynamic="yes"), TypeError, "dynamic takes a bool"),
        (lambda: minidynamo.optimize("eager", guard_fail_fn=3), TypeError, "guard_fail_fn takes a callable"),
        (lambda: minidynamo.optimize("eager")(int), TypeError, "not the class int"),
        (lambda: minidynamo.optimize("eager")(3), TypeError, "an object of type int"),
        (lambda: minidynamo.compile(add_one, bakend="eager"), TypeError, "bakend"),
        (lambda: minidynamo.disable(3), TypeError, "takes a callable"),
        (lambda: minidynamo.cache_entries(3), TypeError, "function or code object"),
    ],
)
def test_bad_use_is_told_at_decoration(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_backend_options_reach_a_backend_that_takes_them():
    got = []

    def backend(gm, inputs, *, options=None, mode=None):
        got.append((options, mode))
        return gm.forward

    minidynamo.optimize(backend, options={"a": 1})(add_one)(X)
    minidynamo.optimize(backend, mode="m")(add_one)(X)
    assert got == [({"a": 1}, None), (None, "m")]


def test_compile_is_a_decorator_and_a_function():
    counter = CompileCounter()

    @minidynamo.compile(backend=counter, fullgraph=True)
    def f(x):
        return x * 2

    assert torch.equal(f(X), X * 2)
    assert torch.equal(minidynamo.compile(add_one, backend=counter)(X), X + 1)
    assert counter.frame_count == 2


def test_disable_true_gives_the_function_back():
    assert minidynamo.optimize("eager", disable=True)(add_one) is add_one


def test_config_disable_runs_plain():
    counter = CompileCounter()
    f = minidynamo.optimize(counter)(lambda x: x + 1)
    with minidynamo.config.patch(disable=True):
        assert torch.equal(f(X), X + 1)
    assert counter.frame_count == 0


def test_optimizing_twice_uses_the_function_below():
    inner = minidynamo.optimize("eager")(add_one)
    assert minidynamo.optimize("eager")(inner).__wrapped__ is add_one


def test_context_manager_captures_what_is_called_inside():
    def f(x):
        return x * 3

    with minidynamo.optimize("eager"):
        assert torch.equal(f(X), X * 3)
    assert len(minidynamo.cache_entries(f)) == 1
    with minidynamo.optimize("eager"):
        f(X)
    assert [e.hits for e in minidynamo.cache_entries(f)] == [1]
    f(X)
    assert [e.hits for e in minidynamo.cache_entries(f)] == [1]


# --- the optimized object (decision 30) --------------------------------------------------------------------------------


class Thing:
    scale = 2.0

    @minidynamo.optimize("eager")
    def method(self, x):
        """Doc."""
        return x + 1

    @classmethod
    @minidynamo.optimize("eager")
    def of_class(cls, x):
        return x + 2

    @minidynamo.optimize("eager")
    @staticmethod
    def static(x):
        return x + 3

    @property
    @minidynamo.optimize("eager")
    def prop(self):
        return torch.ones(2) + 4


@minidynamo.optimize("eager")
def module_level(x):
    return x + 5


def test_it_works_as_every_kind_of_attribute():
    thing = Thing()
    assert torch.equal(thing.method(X), X + 1)
    assert torch.equal(Thing.method(thing, X), X + 1)
    assert torch.equal(Thing.of_class(X), X + 2) and torch.equal(thing.of_class(X), X + 2)
    assert torch.equal(thing.static(X), X + 3)
    assert torch.equal(thing.prop, torch.full((2,), 5.0))


def test_it_looks_like_the_function():
    assert Thing.method.__name__ == "method" and Thing.method.__doc__ == "Doc."
    assert Thing.method.__qualname__ == "Thing.method" and Thing.method.__module__ == __name__
    assert module_level.__code__ is module_level.__wrapped__.__code__
    assert functools.wraps(module_level)(lambda x: x).__name__ == "module_level"


def test_pickle_and_deepcopy():
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.deepcopy(module_level) is module_level


@pytest.mark.parametrize(
    "call", [lambda f: f(X, 2), lambda f: f(x=X, n=2), lambda f: f(X, n=2), lambda f: f(n=2, x=X)]
)
def test_all_ways_to_pass_arguments_hit_one_entry(call):
    counter = CompileCounter()

    @minidynamo.optimize(counter)
    def f(x, n=1):
        return x * n

    for _ in range(2):
        assert torch.equal(call(f), X * 2)
    assert counter.frame_count == 1


def test_wrong_arguments_raise_pythons_own_error():
    def f(x):
        return x

    with pytest.raises(TypeError) as plain:
        f()
    with pytest.raises(TypeError) as captured:
        minidynamo.optimize("eager")(f)()
    assert str(plain.value) == str(captured.value)


# --- sharing, keys, limits -----------------------------------------------------------------------------------------------


def test_equal_options_share_entries_and_isolate_does_not():
    counter = CompileCounter()

    def f(x):
        return x + 1

    first, second = minidynamo.optimize(counter)(f), minidynamo.optimize(counter)(f)
    first(X), second(X)
    assert counter.frame_count == 1
    minidynamo.optimize(counter, isolate=True)(f)(X)
    assert counter.frame_count == 2


def test_entries_die_with_the_last_object_of_their_key():
    def f(x):
        return x + 1

    first = minidynamo.optimize(CompileCounter())(f)
    first(X)
    del first
    assert minidynamo.cache_entries(f) == []


def test_another_backend_never_uses_the_entry():
    one, two = CompileCounter(), CompileCounter()

    def f(x):
        return x + 1

    objects = minidynamo.optimize(one)(f), minidynamo.optimize(two)(f)
    for g in objects:
        g(X)
    assert (one.frame_count, two.frame_count) == (1, 1)


def test_limit_counts_per_object():
    def f(x, n):
        return x + n

    counter = CompileCounter()
    with minidynamo.config.patch(cache_size_limit=2):
        for _ in range(2):
            g = minidynamo.optimize(counter, isolate=True)(f)
            g(X, 1), g(X, 2)
    assert counter.frame_count == 4


def test_past_the_limit_entries_are_still_used_and_one_warning_names_the_guard():
    counter = CompileCounter()

    @minidynamo.optimize(counter)
    def f(x, n):
        return x + n

    with minidynamo.config.patch(cache_size_limit=2):
        f(X, 0), f(X, 1)
        with pytest.warns(
            minidynamo.exc.MinidynamoWarning, match="argument n kept changing: 0, 1, 2"
        ) as told:
            assert torch.equal(f(X, 2), X + 2)
            assert torch.equal(f(X, 3), X + 3)
        assert len(told) == 1 and "n == 1" in str(told[0].message)
        before = minidynamo.cache_entries(f)[0].hits
        f(X, 0)
        assert minidynamo.cache_entries(f)[0].hits == before + 1
    assert counter.frame_count == 2


def test_past_the_limit_callees_are_not_compiled():
    counter = CompileCounter()

    @minidynamo.disable
    def opaque():
        return inner(X)

    def inner(x):
        return x + 1

    @minidynamo.optimize(counter)
    def f(x, n):
        y = x + n
        helper(y)
        return y

    def helper(x):
        print("", end="")
        return x + 1

    with minidynamo.config.patch(cache_size_limit=1):
        f(X, 0)
        graphs = counter.frame_count
        with pytest.warns(minidynamo.exc.MinidynamoWarning):
            f(X, 1)
    assert counter.frame_count == graphs


def test_error_on_recompile_names_the_cause():
    f = minidynamo.optimize("eager")(lambda x, n: x + n)
    f(X, 1)
    with minidynamo.config.patch(error_on_recompile=True):
        with pytest.raises(minidynamo.exc.RecompileError, match="argument n: expected 1, found 2"):
            f(X, 2)
        f(X, 1)


def test_guard_fail_fn_is_told():
    told = []
    f = minidynamo.optimize("eager", guard_fail_fn=told.append)(lambda x, n: x + n)
    f(X, 1)
    assert told == []
    f(X, 2)
    assert told[0].failures[0][1] == "n == 1"


def test_guard_fail_fn_that_raises_is_told_and_the_program_goes_on():
    def fails(event):
        raise ValueError("no")

    f = minidynamo.optimize("eager", guard_fail_fn=fails)(lambda x, n: x + n)
    f(X, 1)
    with pytest.warns(minidynamo.exc.MinidynamoWarning, match="guard_fail_fn raised ValueError: no"):
        assert torch.equal(f(X, 2), X + 2)


# --- nopython ----------------------------------------------------------------------------------------------------------


def test_nopython_names_place_line_reason_and_remedy():
    with pytest.raises(Unsupported) as stop:
        minidynamo.optimize("eager", nopython=True)(breaks)(X)
    text = str(stop.value)
    line = breaks.__code__.co_firstlineno + 2
    for part in (f"{__file__}:{line}", "if y.sum() > 0:", "MD201", "to do: use torch.where"):
        assert part in text


def test_nopython_of_a_function_without_operators_is_no_error():
    """There is nothing to capture, and no break; with values that have operators it is captured, or refused, as ever."""

    def f(x, n):
        if n < 0:
            print("below")
        return n + 1 if x is None else x + n

    counter = CompileCounter()
    strict = minidynamo.optimize(counter, nopython=True)(f)
    assert [strict(None, n) for n in range(6)] == [1, 2, 3, 4, 5, 6]
    assert counter.frame_count == 0
    assert torch.equal(strict(X, 2), X + 2) and counter.frame_count == 1
    with pytest.raises(minidynamo.exc.Unsupported, match="MD210"):
        strict(X, -1)


def test_nopython_does_not_use_an_entry_with_a_break():
    minidynamo.optimize("eager")(breaks)(X)
    with pytest.raises(Unsupported):
        minidynamo.optimize("eager", nopython=True)(breaks)(X)
    assert torch.equal(minidynamo.optimize("eager")(breaks)(X), breaks(X))


def test_nopython_names_the_inner_line():
    def inner(x):
        print("", end="")
        return x

    with pytest.raises(Unsupported, match="inside .*inner, which .*outer calls.*call of print"):

        def outer(x):
            return inner(x) + 1

        minidynamo.optimize("eager", nopython=True)(outer)(X)


def test_nopython_on_a_generator_says_so():
    def numbers(x):
        yield x

    with pytest.raises(Unsupported, match="MD301"):
        minidynamo.optimize("eager", nopython=True)(numbers)


# --- backends that fail ------------------------------------------------------------------------------------------------


def failing(gm, inputs):
    raise ValueError("no such instruction")


def test_backend_that_raises():
    with pytest.raises(
        minidynamo.exc.BackendCompilerFailed, match="'failing' raised ValueError: no such instruction"
    ) as e:
        minidynamo.optimize(failing)(add_one)(X)
    assert isinstance(e.value.__cause__, ValueError)


def test_suppressed_backend_error_runs_plain_with_a_warning():
    with (
        minidynamo.config.patch(suppress_errors=True),
        pytest.warns(minidynamo.exc.MinidynamoWarning, match="failing"),
    ):
        assert torch.equal(minidynamo.optimize(failing)(lambda x: x + 1)(X), X + 1)


def test_backend_that_returns_no_callable():
    with pytest.raises(minidynamo.exc.BackendCompilerFailed, match="returned int, not a callable"):
        minidynamo.optimize(lambda gm, inputs: 5)(add_one)(X)


# --- disable, reset, explain ---------------------------------------------------------------------------------------------


def test_disable_breaks_the_graph_and_keeps_callees_plain():
    counter = CompileCounter()

    def callee(x):
        return x + 1

    @minidynamo.disable
    def off(x):
        return callee(x) * 2

    @minidynamo.optimize(counter)
    def f(x):
        return off(x + 1) - 1

    assert torch.equal(f(X), (X + 2) * 2 - 1)
    assert minidynamo.cache_entries(callee) == [] and counter.frame_count == 2


def test_disable_not_recursive_skips_only_the_frame():
    def callee(x):
        return x + 1

    def off(x):
        return callee(x) * 2

    off = minidynamo.disable(off, recursive=False)
    minidynamo.optimize("eager")(off)(X)
    assert minidynamo.cache_entries(off) == [] and len(minidynamo.cache_entries(callee)) == 1


def test_reset_drops_entries():
    f = minidynamo.optimize("eager")(breaks)
    f(X)
    minidynamo.reset()
    assert minidynamo.cache_entries(f) == []
    f(X)
    assert minidynamo.cache_entries(f)[0].guarded.compile_id == "0/0"


def test_explain_reports_without_resetting():
    f = minidynamo.optimize("eager")(breaks)
    f(X)
    out = minidynamo.explain(f)(X)
    assert torch.equal(out.result, breaks(X))
    assert (out.graph_count, out.op_count, out.graph_break_count, out.compiled) == (2, 4, 1, [])
    assert "MD201" in str(out) and "use torch.where" in str(out)


def test_compiled_frames_follow_resume_functions():
    f = minidynamo.optimize("eager")(breaks)
    f(X), f(-X - 2)
    assert [depth for depth, _ in minidynamo.compiled_frames(f)] == [0, 1, 1]


def test_example_inputs_are_the_real_tensors_in_placeholder_order():
    seen = []

    def backend(gm, inputs):
        seen.append((inputs, [n.name for n in gm.graph.nodes if n.op == "placeholder"]))
        return gm.forward

    y = torch.ones(4)
    minidynamo.optimize(backend)(lambda x, y: y * 2 + x)(X, y)
    ((inputs, names),) = seen
    assert inputs[0] is y and inputs[1] is X and names == ["y", "x"]


def test_graphs_return_a_tuple():
    graphs = EagerAndRecordGraphs()
    minidynamo.optimize(graphs)(add_one)(X)
    (out,) = [n for n in graphs.graphs[0].graph.nodes if n.op == "output"]
    assert type(out.args[0]) is tuple and len(out.args[0]) == 1


def test_a_function_disabled_by_itself_stays_so_after_reset():
    def inner(x):
        return x * 2

    @minidynamo.disable(recursive=False)
    def off(x):
        return inner(x) + 1

    f = minidynamo.optimize("eager")(lambda x: off(x) - 1)
    for _ in range(2):
        minidynamo.reset()
        f(X), f(X)
        assert minidynamo.cache_entries(off) == [] and minidynamo.cache_entries(inner)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: minidynamo.optimize("eager", True),
            "only backend is given by position; write nopython=True",
        ),
        (
            lambda: minidynamo.optimize("eager", fullgraph=True),
            "no argument 'fullgraph'; there are nopython, ",
        ),
        (lambda: minidynamo.optimize("eager", no_python=True), "did you mean 'nopython'"),
        (lambda: minidynamo.compile(add_one, True), "only model is given by position; write fullgraph=True"),
        (
            lambda: minidynamo.compile(add_one, dynamics=True),
            "no argument 'dynamics'; did you mean 'dynamic'",
        ),
    ],
)
def test_wrong_calls_name_the_argument_in_one_line(call, text):
    with pytest.raises(TypeError, match=text) as told:
        call()
    assert "\n" not in str(told.value)


def test_the_signature_is_the_decided_one():
    import inspect

    kinds = [(p.name, p.kind.name) for p in inspect.signature(minidynamo.optimize).parameters.values()]
    names = ("nopython", "dynamic", "mode", "options", "disable", "guard_fail_fn", "isolate")
    assert kinds == [("backend", "POSITIONAL_OR_KEYWORD"), *((name, "KEYWORD_ONLY") for name in names)]


def test_all_entries_of_a_function_together_have_a_limit():
    def f(x, n):
        return x + n

    counter = CompileCounter()
    with minidynamo.config.patch(accumulated_recompile_limit=3):
        objects = [minidynamo.optimize(counter, isolate=True)(f) for _ in range(4)]
        for g in objects[:3]:
            g(X, 1)
        with (
            pytest.warns(
                minidynamo.exc.MinidynamoWarning,
                match=r"was compiled 3 times \(accumulated_recompile_limit\)",
            ) as told,
            minidynamo.record() as found,
        ):
            assert torch.equal(objects[3](X, 1), X + 1)
            assert torch.equal(objects[0](X, 2), X + 2)
            assert torch.equal(objects[0](X, 3), X + 3)
        assert len(told) == 2  # once per object
    assert counter.frame_count == 3
    assert {(limit.limit, limit.option) for limit in found.run.limits} == {(3, "accumulated_recompile_limit")}


def frames_of(call, *args):
    with pytest.raises(minidynamo.exc.MinidynamoError) as told:
        call(*args)
    return told.value, [entry.path for entry in told.traceback if "minidynamo" in entry.path.parts[-2:-1]]


def refusing(gm, example_inputs):
    raise ValueError("no such operator")


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("kind", ["break", "backend", "recompile"])
def test_errors_show_the_programs_frames_only_unless_verbose(kind, verbose):
    def f(x, n=1):
        print("", end="")
        return x + n

    def g(x, n=1):
        return x + n

    made = {
        "break": lambda: minidynamo.optimize("eager", nopython=True)(f),
        "backend": lambda: minidynamo.optimize(refusing)(g),
        "recompile": lambda: minidynamo.optimize("eager")(g),
    }[kind]()
    if kind == "recompile":
        made(X)
    with minidynamo.config.patch(verbose=verbose, error_on_recompile=True):
        error, own = frames_of(made, X, 2)
    assert bool(own) == verbose
    assert __file__ in str(error)
    if kind == "backend":
        assert isinstance(error.__cause__, ValueError)
        frames = error.__cause__.__traceback__
        assert (frames.tb_frame.f_code is refusing.__code__) != verbose
