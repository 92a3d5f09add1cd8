"""set_stance: what each stance does with entries that exist and with calls that fit none; call, manager, decorator."""

import threading

import pytest
import torch

import minidynamo
from minidynamo.cache import stats
from minidynamo.exc import RecompileError
from minidynamo.stance import STANCES, at_miss, set_stance
from minidynamo.testing import CompileCounter

X = torch.arange(4.0)


@pytest.fixture(autouse=True)
def default():
    yield
    set_stance("default")
    theirs = __import__("sys").modules.get("torch._dynamo.eval_frame")
    if theirs is not None:
        torch.compiler.set_stance("default")


def breaks(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 2


def made(fn, *args):
    """An optimized function with an entry for `args`, and its counter."""
    counter = CompileCounter()
    optimized = minidynamo.optimize(counter)(fn)
    optimized(*args)
    return optimized, counter


def runs():
    """How often an entry has run, whoever ran it."""
    return sum(v for name, v in stats().items() if name.startswith("hits_") or name == "graphs_direct")


# --- force_eager -----------------------------------------------------------------------------------------------------
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x) + 1


class Scaled:
    def __init__(self):
        self.n = 3

    def times(self, x):
        return x * self.n

    def __call__(self, x):
        return x * self.n


@pytest.mark.parametrize(
    "target",
    [lambda x: x + 1, breaks, Layer(), Scaled().times, Scaled()],
    ids=["function", "break", "module", "method", "object"],
)
def test_force_eager_uses_no_entry_and_makes_none(target):
    f, counter = made(target, X)
    compiled, before = counter.frame_count, runs()
    with set_stance("force_eager"):
        assert torch.equal(f(X), target(X))
        assert torch.equal(f(torch.ones(2, 4)), target(torch.ones(2, 4)))
    assert runs() == before and counter.frame_count == compiled
    f(X)
    assert runs() > before and counter.frame_count == compiled


def test_force_eager_holds_for_objects_made_while_it_holds():
    with set_stance("force_eager"):
        counter = CompileCounter()
        f = minidynamo.optimize(counter)(lambda x: x + 1)
        f(X)
        assert counter.frame_count == 0
    f(X)
    assert counter.frame_count == 1


def test_force_eager_inside_of_a_captured_call_holds_for_the_rest_of_it():
    counter = CompileCounter()

    @minidynamo.optimize(counter)
    def f(x):
        y = x + 1
        set_stance("force_eager")
        return y * 2

    assert torch.equal(f(X), (X + 1) * 2) and counter.frame_count == 1
    assert torch.equal(f(X), (X + 1) * 2) and counter.frame_count == 1
    set_stance("default")
    f(X)
    assert counter.frame_count == 1  # up to the break it hits; behind it the stance holds again


def test_force_eager_holds_in_the_context_manager_of_optimize_and_below_disabled_functions():
    counter = CompileCounter()
    plain = minidynamo.disable(lambda x: x * 2)

    def f(x):
        return plain(x + 1)

    with set_stance("force_eager"), minidynamo.optimize(counter):
        assert torch.equal(f(X), (X + 1) * 2)
    assert counter.frame_count == 0


def test_force_eager_is_of_the_whole_process():
    f, counter = made(lambda x: x + 1, X)
    found = []
    with set_stance("force_eager"):
        before = runs()
        thread = threading.Thread(target=lambda: found.append(f(X)))
        thread.start()
        thread.join()
        assert runs() == before and torch.equal(found[0], X + 1)


def test_force_eager_passes_the_programs_errors_through():
    f, _ = made(lambda x, y: x + y, X, X)
    with set_stance("force_eager"):
        with pytest.raises(TypeError, match="missing 1 required"):
            f(X)
        with pytest.raises(RuntimeError, match="must match"):
            f(X, torch.ones(3))


def test_objects_die_as_before():
    import weakref

    def f(x):
        return x

    objects = [minidynamo.optimize("eager")(f) for _ in range(5)]
    refs = [weakref.ref(each) for each in objects]
    del objects[2], objects[0]
    assert [ref() is None for ref in refs] == [True, False, True, False, False]
    with set_stance("force_eager"):
        del objects[:]
    assert all(ref() is None for ref in refs)


# --- the others --------------------------------------------------------------------------------------------------------
def test_eager_on_recompile_uses_entries_and_makes_none():
    f, counter = made(lambda x, n: x + n, X, 1)
    with set_stance("eager_on_recompile"):
        before = runs()
        f(X, 1)
        assert runs() > before
        assert torch.equal(f(X, 2), X + 2) and counter.frame_count == 1
        g = minidynamo.optimize(counter)(breaks)
        assert torch.equal(g(X), breaks(X)) and counter.frame_count == 1
    f(X, 2)
    assert counter.frame_count == 2


def test_fail_on_recompile_names_the_cause():
    f, counter = made(lambda x, n: x + n, X, 1)
    with set_stance("fail_on_recompile"):
        assert torch.equal(f(X, 1), X + 1)
        with pytest.raises(RecompileError, match=r"argument n: expected 1, found 2[\s\S]*leave the stance"):
            f(X, 2)
        g = minidynamo.optimize(counter)(lambda x: x * 2)
        with pytest.raises(RecompileError, match="has no entry yet"):
            g(X)
        h = minidynamo.optimize(counter)(lambda n: n * 2)
        assert h(4) == 8  # no tensor, nothing to compile
    assert torch.equal(f(X, 2), X + 2)


def test_fail_on_recompile_reaches_the_rest_after_a_break_and_callees():
    f, _ = made(breaks, X)
    with set_stance("fail_on_recompile"):
        assert torch.equal(f(X), breaks(X))
        with pytest.raises(RecompileError, match="has no entry yet"):
            f(-X - 5)  # the other side of the branch


def test_eager_then_compile_runs_the_first_call_of_each_function():
    counter = CompileCounter()
    f, g = minidynamo.optimize(counter)(breaks), minidynamo.optimize(counter)(lambda x: x - 1)
    with set_stance("eager_then_compile"):
        f(X), g(X)
        assert counter.frame_count == 0
        f(X)
        assert counter.frame_count == 2  # the resume function with it
        g(X), g(X)
        assert counter.frame_count == 3
        g(torch.ones(2))
        assert counter.frame_count == 4


# --- how it is set -------------------------------------------------------------------------------------------------------
def test_as_a_call_it_holds_until_the_next():
    set_stance("eager_on_recompile")
    assert at_miss() == "eager_on_recompile"
    set_stance("default")
    assert at_miss() == "default"


def test_as_a_manager_it_nests_and_is_restored_after_an_error():
    outer = set_stance("eager_on_recompile")
    with outer, set_stance("fail_on_recompile"):
        assert at_miss() == "fail_on_recompile"
        with outer:
            assert at_miss() == "eager_on_recompile"
        assert at_miss() == "fail_on_recompile"
    assert at_miss() == "default"
    with pytest.raises(KeyError), set_stance("force_eager"):
        raise KeyError
    assert at_miss() == "default"


def test_as_a_decorator_it_holds_in_calls_only():
    f, counter = made(lambda x: x + 1, X)

    @set_stance("force_eager")
    def plainly(x):
        """Doc."""
        return f(x), at_miss()

    assert at_miss() == "default" and plainly.__doc__ == "Doc."
    before = runs()
    assert plainly(X)[1] == "force_eager" and runs() == before
    assert at_miss() == "default"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: set_stance("force_eagr"), ValueError, "did you mean 'force_eager'"),
        (lambda: set_stance(3), ValueError, "stances are default, force_eager"),
        (lambda: set_stance(skip_guard_eval_unsafe=True), ValueError, "guards are always checked"),
        (lambda: set_stance(force_backend="eager"), ValueError, "config.backend"),
        (lambda: set_stance("default")(3), TypeError, "decorates functions, not int"),
    ],
)
def test_bad_arguments_in_one_line_change_nothing(call, error, text):
    with pytest.raises(error, match=text) as told:
        call()
    assert "\n" not in str(told.value) and at_miss() == "default"


def test_a_generator_function_is_refused():
    def items():
        yield 1

    with pytest.raises(TypeError, match="runs after its call"):
        set_stance("default")(items)


# --- torch's own ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stance", [s for s in STANCES if s != "default"])
def test_torchs_stance_holds_where_no_entry_fits(stance):
    f, counter = made(lambda x, n: x + n, X, 1)
    torch.compiler.set_stance(stance)
    if stance == "fail_on_recompile":
        with pytest.raises(RecompileError, match="expected 1, found 2"):
            f(X, 2)
    else:
        assert torch.equal(f(X, 2), X + 2)
    assert counter.frame_count == (2 if stance == "eager_then_compile" else 1)
    with set_stance("eager_on_recompile"):  # ours goes first
        assert at_miss() == "eager_on_recompile"
