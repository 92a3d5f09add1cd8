"""The backend registry."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import minidynamo
from minidynamo import backends, list_backends, lookup_backend, register_backend
from minidynamo.backends import registry
from minidynamo.exc import BackendCompilerFailed, InvalidBackend, MinidynamoWarning
from minidynamo.testing import CompileCounter
from tests.eager import T

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def restored():
    before = dict(registry._REGISTRY)
    yield
    registry._REGISTRY.clear()
    registry._REGISTRY.update(before)


def mine(gm, inputs):
    return gm.forward


def test_register_by_own_name_and_by_another():
    assert register_backend(mine) is mine
    register_backend(name="other")(mine)
    assert lookup_backend("mine").compiler_fn is lookup_backend("other").compiler_fn is mine
    assert {"eager", "debug", "mine", "other"} <= set(list_backends())


def test_a_taken_name_is_refused_but_the_same_backend_is_not():
    register_backend(mine)
    register_backend(mine)
    with pytest.raises(InvalidBackend, match="the name 'mine' is taken"):
        register_backend(lambda gm, inputs: gm, name="mine")


def test_what_is_no_backend():
    with pytest.raises(InvalidBackend, match="takes a callable"):
        register_backend(3)
    with pytest.raises(InvalidBackend, match="pass name="):
        register_backend(type("Anonymous", (), {"__call__": lambda self, gm, i: gm})())


# --- names of others ------------------------------------------------------------------------------------------------------


def test_own_names_torchs_and_entry_points_are_listed():
    names = list_backends()
    assert names == sorted(names)
    assert {"eager", "debug", "aot_eager", "inductor", "cudagraphs"} <= set(names)
    assert "eager_noexcept" in list_backends(None) and "eager_noexcept" in list_backends(())
    register_backend(mine, tags=("debug",))
    assert "mine" not in list_backends() and "mine" in list_backends(None)


def test_own_backends_come_before_torchs():
    assert lookup_backend("inductor").compiler_fn is backends.inductor.inductor
    assert lookup_backend("aot_eager").compiler_fn is backends.aot.aot_eager
    assert not lookup_backend("eager").needs_meta and not lookup_backend("debug").needs_meta


@pytest.mark.parametrize(
    "name", ["eager_noexcept", "eager_debug", "aot_eager_decomp_partition", "aot_ts", "ts"]
)
def test_torchs_own_backends_run_unchanged(name):
    found = lookup_backend(name)
    assert found.name == name and found.needs_meta
    f = minidynamo.optimize(name)(lambda x, w: torch.relu(x @ w).sum())
    w, plain = T(3, 2, requires_grad=True), T(3, 2, requires_grad=True)
    f(T(4, 3), w).backward()
    torch.relu(T(4, 3) @ plain).sum().backward()
    assert torch.equal(w.grad, plain.grad)


def test_a_backend_registered_with_torch_is_found():
    from torch._dynamo.backends import registry as theirs

    theirs.register_backend(mine, name="registered_with_torch")
    try:
        assert lookup_backend("registered_with_torch").compiler_fn is mine
    finally:
        del theirs._BACKENDS["registered_with_torch"], theirs._COMPILER_FNS["registered_with_torch"]


def installed(tmp_path, monkeypatch, text):
    """A package that offers the backend `packaged`."""
    (tmp_path / "packaged_backend.py").write_text(text)
    info = tmp_path / "packaged_backend-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: packaged_backend\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[torch_dynamo_backends]\npackaged = packaged_backend:compile_graph\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_an_entry_point(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, "def compile_graph(gm, inputs):\n    return gm.forward\n")
    assert "packaged" in list_backends()
    f = minidynamo.optimize("packaged")(lambda x: x + 1)
    assert torch.equal(f(T(3)), T(3) + 1)
    assert [entry.guarded.backend for entry in minidynamo.cache_entries(f)] == ["packaged"]


def test_an_entry_point_that_does_not_load(tmp_path, monkeypatch):
    installed(tmp_path, monkeypatch, "raise RuntimeError('no licence')\n")
    monkeypatch.delitem(sys.modules, "packaged_backend", raising=False)
    with pytest.raises(InvalidBackend, match="'packaged' does not load: RuntimeError: no licence; mend"):
        minidynamo.optimize("packaged")


def test_an_unknown_name_is_one_line_with_the_nearest():
    with pytest.raises(InvalidBackend) as caught:
        minidynamo.optimize("indutcor")
    assert str(caught.value) == (
        "no backend named 'indutcor'; did you mean 'inductor'? (or pass a callable `(gm, example_inputs)`)"
    )
    with pytest.raises(InvalidBackend, match="known are aot_eager, .*inductor"):
        minidynamo.compile(lambda x: x, backend="zzzz")


@pytest.mark.parametrize("backend", [3, None, int, object(), CompileCounter])
def test_what_is_no_backend_is_refused_at_decoration(backend):
    with pytest.raises(InvalidBackend, match="backend must be a name or a callable, not "):
        minidynamo.optimize(backend)


@pytest.mark.slow
def test_a_known_name_loads_nothing_of_torchs_registry():
    program = (
        "import sys, torch, minidynamo\n"
        "minidynamo.optimize()(lambda x: x); minidynamo.compile(lambda x: x, backend='aot_eager')\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor.config', 'sympy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


# --- mode and options ------------------------------------------------------------------------------------------------------

REFUSED = {
    "unknown mode": ({"mode": "max-autotun"}, "has no mode 'max-autotun'; did you mean 'max-autotune'?"),
    "unknown option": (
        {"options": {"max_autotunee": True}},
        "has no option 'max_autotunee'; did you mean 'max_autotune'?",
    ),
    "odd option": ({"options": {"qqqqqqqq": 1}}, "torch._inductor.list_options\\(\\) has their names"),
    "type of an option": (
        {"options": {"max_autotune": "yes"}},
        "'max_autotune' of backend 'inductor' takes bool, not str",
    ),
    "both": (
        {"mode": "reduce-overhead", "options": {"max_autotune": True}},
        "mode='reduce-overhead' and options=.* were both given",
    ),
    "type of mode": ({"mode": 3}, "mode takes a str, not int"),
    "type of options": ({"options": [1]}, "options takes a dict, not list"),
    "a backend without": ({"backend": "eager", "mode": "max-autotune"}, "'eager' takes no mode= \\(got"),
    "a function without": ({"backend": mine, "options": {"a": 1}}, "'mine' takes no options= \\(got"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_at_decoration(case):
    arguments, message = case
    with pytest.raises(InvalidBackend, match=message):
        minidynamo.compile(**arguments)
    with pytest.raises(RuntimeError):  # as torch.compile
        minidynamo.compile(lambda x: x, **arguments)


@pytest.mark.parametrize("mode", [None, "default"])
def test_the_default_mode_is_no_mode(mode):
    f = minidynamo.compile(lambda x: x + 1, backend="eager", mode=mode, options={})
    assert torch.equal(f(T(3)), T(3) + 1)


def test_mode_and_options_reach_a_backend_that_takes_them():
    given = []

    def takes(gm, inputs, *, mode=None, options=None):
        given.append((mode, options))
        return gm.forward

    def takes_any(gm, inputs, **kwargs):
        given.append(kwargs)
        return gm.forward

    minidynamo.compile(lambda x: x + 1, backend=takes, mode="quick")(T(3))
    minidynamo.compile(lambda x: x + 1, backend=takes, options={"a": 1})(T(3))
    minidynamo.compile(lambda x: x + 1, backend=takes_any, options={"a": 1})(T(3))
    assert given == [("quick", None), (None, {"a": 1}), {"options": {"a": 1}}]


@pytest.mark.parametrize("mode", ["max-autotune", "reduce-overhead", "max-autotune-no-cudagraphs"])
def test_modes_of_inductor_are_sets_of_options(mode):
    import torch._inductor

    bound = backends.inductor.configure(mode, None)
    assert bound.keywords["patches"] == torch._inductor.list_mode_options(mode)


def test_names_of_options_may_have_hyphens():
    bound = backends.inductor.configure(None, {"max-autotune": True, "triton.cudagraphs": False})
    assert bound.keywords["patches"] == {"max_autotune": True, "triton.cudagraphs": False}


def test_compile_has_torch_compiles_signature():
    ours = inspect.signature(minidynamo.compile).parameters
    theirs = inspect.signature(torch.compile).parameters
    assert [*ours] == ["model", "fullgraph", "dynamic", "backend", "mode", "options", "disable"]
    for name, parameter in ours.items():
        assert parameter.kind is theirs[name].kind
    with pytest.raises(TypeError, match="no argument 'fullgrpah'; did you mean 'fullgraph'"):
        minidynamo.compile(fullgrpah=True)


def test_compile_is_a_decorator_without_a_model():
    @minidynamo.compile(backend="eager", fullgraph=True)
    def f(x):
        return x + 1

    assert torch.equal(f(T(3)), T(3) + 1)
    same = minidynamo.compile(torch.relu, disable=True)
    assert same is torch.relu


# --- what a backend may return ------------------------------------------------------------------------------------------------

WRONG = {
    "nothing": (lambda gm, inputs: None, "returned NoneType, not a callable"),
    "results at once": (lambda gm, inputs: gm(*inputs), "returned tuple, not a callable"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_backend_that_returns_no_callable(case):
    backend, message = case
    with pytest.raises(BackendCompilerFailed, match=message) as caught:
        minidynamo.optimize(backend)(lambda x: x + 1)(T(3))
    assert "\n" not in str(caught.value)


def test_a_backend_that_raises():
    def failing(gm, inputs):
        raise ValueError("no such operator")

    with pytest.raises(BackendCompilerFailed, match="backend 'failing' raised ValueError: no such operator"):
        minidynamo.optimize(failing)(lambda x: x + 1)(T(3))
    with minidynamo.config.patch(suppress_errors=True), pytest.warns(MinidynamoWarning, match="plain Python"):
        assert torch.equal(minidynamo.optimize(failing)(lambda x: x + 2)(T(3)), T(3) + 2)


RETURNED = {
    "too many": (lambda out: (*out, *out), r"returned 2 value\(s\), but the graph has 1 output\(s\)"),
    "too few": (lambda out: (), r"returned 0 value\(s\), but the graph has 1 output\(s\)"),
    "one tensor": (
        lambda out: out[0],
        r"returned Tensor, but the graph has 1 output\(s\): it must return a tuple or list",
    ),
    "nothing": (lambda out: None, r"returned NoneType, but the graph has 1 output\(s\)"),
}


@pytest.mark.parametrize("case", RETURNED.values(), ids=RETURNED)
def test_a_compiled_graph_that_returns_the_wrong_thing(case):
    """The program's result is right all the same where nothing was changed: plain Python gives it, and one line says why."""
    change, message = case

    def backend(gm, inputs):
        return lambda *args: change(gm.forward(*args))

    with minidynamo.config.patch(verify=False):
        f = minidynamo.optimize(backend)(lambda x: x + 1)
        with pytest.warns(MinidynamoWarning, match=message):
            assert torch.equal(f(T(3)), T(3) + 1)
        g = minidynamo.optimize(backend)(lambda x: x.add_(1).sum())
        with pytest.raises(RuntimeError, match=message):
            g(T(3))


def test_a_list_of_outputs_will_do():
    f = minidynamo.optimize(lambda gm, inputs: lambda *args: list(gm.forward(*args)))(
        lambda x: (x + 1, x * 2)
    )
    assert all(torch.equal(*pair) for pair in zip(f(T(3)), (T(3) + 1, T(3) * 2)))
