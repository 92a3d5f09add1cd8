"""minidynamo in ten small programs. Read from top to bottom; each test shows one idea and what one sees of it."""

from __future__ import annotations

import pytest
import torch

import minidynamo
from tests.eager import T, check


def test_01_operators_on_tensors_become_a_graph(trace):
    def f(x):
        y = x + 1
        return torch.relu(y) * y

    assert trace(f, T(3)).graph == "a=x+1; b=relu(a); b*a"


def test_02_python_is_evaluated_away(trace):
    def double(x):
        return x * 2

    def f(x):
        parts = [double(x) + i for i in range(2)]
        return sum(parts)

    assert trace(f, T(3)).graph == "a=x*2; b=a+0; c=x*2; d=c+1; e=0+b; e+d"


def test_03_loops_unroll(trace):
    assert trace(lambda x: [x + i for i in range(2)], T(3)).graph == "x+0; x+1"


def test_04_guards_say_when_the_graph_may_be_used_again(trace):
    def f(x, n):
        return x * n

    guards = trace(f, T(3), 2).guards
    assert "n == 2" in guards
    assert "___check_tensors(x, " in guards and "'float32', 'cpu', False, (3,), (1,)" in guards


def test_05_a_failed_guard_compiles_again_and_both_stay():
    @minidynamo.optimize("eager")
    def f(x, n):
        return x * n

    for n in (2, 3, 2, 3):
        assert torch.equal(f(T(3), n), T(3) * n)
    assert [entry.hits for entry in minidynamo.cache_entries(f)] == [1, 1]


def test_06_what_cannot_be_captured_breaks_the_graph(trace, capsys):
    def f(x):
        y = x + 1
        print("between")
        return y * 2

    view = trace(f, T(3))
    assert view.graph == "x+1 | y*2"
    assert view.seen.reasons == ["MD210"]
    assert capsys.readouterr().out == "between\n"


def test_07_a_branch_on_a_tensor_goes_on_in_a_resume_function(trace):
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    view = trace(f, T(3))
    assert view.graph == "a=x.sum(); a>0 | x+1"
    (_, first), (depth, resumed) = view.frames
    assert first.guarded.exit == "break: branch on a tensor's value [MD201]"
    assert depth == 1 and resumed.guarded.exit == "return"


def test_08_side_effects_happen_in_the_programs_order():
    seen = check(
        """
        log = []
        def f(x):
            y = x + 1
            log.append(y)
            log[0] = y * 2
            return log
        """,
        "f(T(2))",
        "f(T(2))",
    )
    assert seen.graphs > 0


def test_09_in_place_operators_change_the_callers_tensor(trace):
    def f(x):
        x += 1
        return x * 2

    x = T(3)
    view = trace(f, x)
    assert view.graph == "x+=1; x*2"
    assert torch.equal(x, T(3) + 1) and torch.equal(view.result, (T(3) + 1) * 2)


def test_10_training_gives_the_same_gradients():
    def loss(w, x):
        return ((x @ w) ** 2).mean()

    captured, plain = T(3, 2, requires_grad=True), T(3, 2, requires_grad=True)
    compiled = minidynamo.optimize("eager", nopython=True)(loss)
    for _ in range(3):
        for w, fn in ((captured, compiled), (plain, loss)):
            fn(w, T(4, 3)).backward()
            with torch.no_grad():
                w -= 1e-3 * w.grad
                w.grad = None
    assert torch.equal(captured, plain)
    assert len(minidynamo.cache_entries(loss)) == 1


def test_11_one_graph_or_an_error_that_names_the_line():
    @minidynamo.optimize("eager", nopython=True)
    def f(x):
        print("no")
        return x + 1

    with pytest.raises(minidynamo.exc.Unsupported, match=r'call of print \[MD210\]\n    print\("no"\)'):
        f(T(3))


def test_12_explain_says_what_happened():
    def f(x):
        y = x + 1
        print("between")
        return y * 2

    text = str(minidynamo.explain(f)(T(3)))
    assert text.splitlines()[0] == "2 graphs, 2 operators, 1 graph breaks"
    assert "call of print [MD210]" in text
