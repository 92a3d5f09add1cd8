"""A value that a wrapper hands on is told where it was written, outside of all wrappers."""

import types

import pytest
import torch  # noqa: F401 - the programs use it

import minidynamo

STEP = """\
import functools, torch, minidynamo
@minidynamo.optimize("eager")
def step(x, lr): return x * lr
"""
PROGRAMS = {
    "args": ("def run(*args): return step(*args)", "run(x, LR)"),
    "kwargs": ("def run(**more): return step(**more)", "run(x=x, lr=LR)"),
    "keyword through both": ("def run(*args, **more): return step(*args, **more)", "run(x, lr=LR)"),
    "after own": ("def run(name, *args): return step(*args)", "run('n', x, LR)"),
    "before the star": ("def run(*args): return step(torch.ones(2), *args)", "run(LR)"),
    "own keyword": ("def run(*args, name, **more): return step(*args, **more)", "run(x, name='n', lr=LR)"),
    "two wrappers": (
        "def one(*args): return step(*args)\ndef run(*args): return one(*args)",
        "run(x, LR)",
    ),
    "decorator": (
        "def deco(f):\n    @functools.wraps(f)\n    def wrapped(*args, **kw):\n        return f(*args, **kw)\n"
        "    return wrapped\nrun = deco(step)",
        "run(x, LR)",
    ),
    "method": (
        "class Trainer:\n    def run(self, *args): return step(*args)\ntrainer = Trainer()",
        "trainer.run(x, LR)",
    ),
    "method by its class": (
        "class Trainer:\n    def run(self, *args): return step(*args)\ntrainer = Trainer()",
        "Trainer.run(trainer, x, LR)",
    ),
}


def recorded(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text)
    minidynamo.reset()
    with minidynamo.record() as found:
        exec(compile(text, str(path), "exec"), types.ModuleType("program").__dict__)
    return found.recompiles


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_outer_call(tmp_path, name):
    wrapper, call = PROGRAMS[name]
    text = (
        f"{STEP}{wrapper}\nx = torch.ones(2)\nfor i in range(3):\n    {call.replace('LR', '0.5 / (i + 1)')}\n"
    )
    [cause] = recorded(tmp_path, text)
    assert (cause.code, cause.site_kind, cause.site.text) == ("MD106", "passed", "0.5 / (i + 1)")
    assert cause.site.line == len(text.splitlines())
    assert [edit["after"].strip() for edit in cause.edits] == [
        call.replace("LR", "torch.tensor(0.5 / (i + 1))")
    ]


@pytest.mark.parametrize(
    ("wrapper", "call"),
    [
        ("def run(*args): return step(*args)", "list(map(run, [x], [0.5 / (i + 1)]))"),
        ("def run(*args): return step(*args)", "values = (x, 0.5 / (i + 1)); run(*values)"),
        ("def run(*args): args = (x, 0.5 / (i + 1)); return step(*args)", "run()"),
        ("def run(*args): args = (x, 0.5 / (i + 1)); return step(*args)", "run(x, 7.0)"),
        ("def run(x, **kw): kw['lr'] = 0.5 / (i + 1); return step(x, **kw)", "run(x, lr=7.0)"),
    ],
)
def test_what_cannot_be_followed_names_no_other_argument(tmp_path, wrapper, call):
    text = f"{STEP}{wrapper}\nx = torch.ones(2)\nfor i in range(3):\n    {call}\n"
    [cause] = recorded(tmp_path, text)
    assert cause.code == "MD106" and cause.site.text in ("args", "values", "kw"), cause.site
