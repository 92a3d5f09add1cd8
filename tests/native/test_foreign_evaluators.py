"""Other people's frame evaluators (debuggers, other compilers) above, below and across ours."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "native" / "testing" / "foreign_eval.c"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The test-only extension, compiled for the interpreter that runs the tests."""
    compiler = next(
        (c for c in (shlex.split(sysconfig.get_config_var("CC"))[0], "cc") if shutil.which(c)), None
    )
    if compiler is None:
        pytest.skip("no C compiler for the foreign evaluator")
    target = tmp_path_factory.mktemp("foreign") / f"foreign_eval{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_path("include")
    flags = [
        "-std=c11",
        "-O1",
        "-fPIC",
        "-shared",
        "-isystem",
        include,
        "-isystem",
        str(Path(include).parent),
    ]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(target)], check=True)
    spec = importlib.util.spec_from_file_location("foreign_eval", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def foreign(built, kit):
    yield built
    left = built.installed()
    built.set_default()
    assert left == -1


@pytest.fixture
def f(kit):
    """Plain it returns "old"; its entry returns "new"."""
    f = kit.define("def f(a=0): return 'old'")
    kit.add(f, kit.define("def f(a=0): return 'new'"))
    return f


def test_ours_on_top_of_another(kit, foreign, f):
    foreign.install(0, True)
    assert kit.hooked(f) == "new" == kit.optimized(f)()
    assert foreign.frames()[0] > 0 and foreign.installed() == 0
    assert f() == "old"
    foreign.restore(0)


@pytest.mark.parametrize("chains", [True, False])
def test_another_on_top_of_ours(kit, foreign, f, chains):
    """One that does not hand frames on hides ours, and nothing worse."""
    before = kit.C.swap_active(kit.ctx)
    foreign.install(0, chains)
    answer = f()
    foreign.restore(0)
    after = f()
    kit.C.swap_active(before)
    assert (answer, after) == ("new" if chains else "old", "new")
    assert kit.optimized(f)() == "new"


@pytest.mark.parametrize("chains", [True, False])
def test_ours_leaves_first(kit, foreign, f, chains):
    """It cannot be taken out from the middle: it stays below and passes frames on, and goes when it is on top again."""
    before = kit.C.swap_active(kit.ctx)
    foreign.install(0, chains)
    kit.C.swap_active(before)
    assert f() == "old" and foreign.installed() == 0
    foreign.restore(0)  # puts ours back, which nobody wants now
    assert foreign.installed() == -2
    assert f() == "old" and foreign.installed() == -1
    assert kit.hooked(f) == "new" and foreign.installed() == -1


@pytest.mark.parametrize("chains", [True, False])
def test_ours_comes_again_above_one_that_knows_it(kit, foreign, f, chains):
    """ours, his, ours gone, ours again: frames pass ours twice and end at CPython's."""
    before = kit.C.swap_active(kit.ctx)
    foreign.install(0, chains)
    kit.C.swap_active(before)
    for _ in range(3):
        before = kit.C.swap_active(kit.ctx)
        assert foreign.installed() == -2
        assert [f(), f()] == ["new", "new"]
        kit.C.swap_active(before)
        assert foreign.installed() == 0
    foreign.restore(0)
    assert f() == "old" and foreign.installed() == -1


def test_two_others_interleaved_with_ours(kit, foreign, f):
    def program(depth=3):
        return [f(), *(program(depth - 1) if depth else [])]

    kit.C.mark_code(program.__code__, kit.C.SKIP)
    foreign.install(1, True)
    first = kit.C.swap_active(kit.ctx)
    foreign.install(0, True)
    inside = program()
    kit.C.swap_active(first)
    again = kit.hooked(program)
    off = program()
    foreign.restore(0)
    assert program() == ["old"] * 4 and foreign.installed() == 1
    foreign.restore(1)
    assert (inside, again, off) == (["new"] * 4, ["new"] * 4, ["old"] * 4)


def test_somebody_resets_everything(kit, foreign, f):
    """A foreign set_default() inside a call takes our evaluator away until it is wanted again."""
    before = kit.C.swap_active(kit.ctx)
    foreign.set_default()
    assert f() == "old" and not kit.C.hook_installed()
    kit.C.swap_active(before)
    assert kit.hooked(f) == "new" and foreign.installed() == -1
    # buried, forgotten, and wanted again
    before = kit.C.swap_active(kit.ctx)
    foreign.install(0, True)
    kit.C.swap_active(before)
    foreign.set_default()
    assert kit.hooked(f) == "new" and foreign.installed() == -1


def test_a_pile_of_evaluators_ends(kit, foreign, f):
    """Each turn of an unbalanced user buries ours once more; past a few turns calls run plain."""
    for turn in range(10):
        before = kit.C.swap_active(kit.ctx)
        foreign.install(turn % 2, False)
        assert f() == "old"
        kit.C.swap_active(before)
    foreign.set_default()
    assert kit.hooked(f) == "new" and foreign.installed() == -1


def test_errors_and_generators_pass_through_the_chain(kit, foreign):
    main = kit.define(
        """
        def gen():
            try:
                yield 1
            except KeyError:
                yield 2

        def fail():
            raise ValueError

        def main():
            g = gen()
            out = [next(g), g.throw(KeyError)]
            try:
                fail()
            except ValueError:
                out.append(3)
            return out
        """
    )
    foreign.install(0, True)
    before = kit.C.swap_active(kit.ctx)
    foreign.install(1, True)
    answer = [main() for _ in range(50)]
    foreign.restore(1)
    kit.C.swap_active(before)
    foreign.restore(0)
    assert answer == [[1, 2, 3]] * 50
