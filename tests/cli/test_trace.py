"""`minidynamo trace`: what each stage shows, where arguments come from, one line for whatever is wrong."""

from __future__ import annotations

import pytest

from minidynamo.cli import main as cli
from minidynamo.cli.stages import STAGES
from minidynamo.cli.trace import STAGES as NAMES

PROGRAM = """\
import torch
import minidynamo

SCALE = 3.0

@minidynamo.optimize("eager")
def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b

def example_args():
    return torch.ones(4), torch.ones(4)

def keywords(x, *, factor):
    return helper(x) * factor * SCALE

def helper(x):
    return x + 1

class Thing:
    def method(self, x):
        return x * 2

thing = Thing()

def plain(n):
    return n + 1

def wrong(a, b):
    raise ValueError("two\\nlines")

def generator(a, b):
    yield a
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def trace(program, capsys):
    """Runs `trace` on a function of the program; gives the exit code, standard output and error output."""

    def run(name: str, *options: str):
        code = cli.main(["trace", f"{program}:{name}", *options])
        return code, *capsys.readouterr()

    return run


def test_the_stages_have_one_table():
    assert tuple(STAGES) == NAMES


def test_all_stages_of_the_founding_example(trace):
    code, out, err = trace("toy_example")
    assert (code, err) == (0, "")
    headings = [line.split(":")[0] for line in out.splitlines() if "────" in line]
    assert headings == list(NAMES)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("lift", ["x = a / (torch.abs(a) + 1)", "BINARY_OP '/'", "RETURN_VALUE"]),
        ("step", ["attempt 1 of 2", "lazy a", "abs_1 float32(4,)", "branch on a tensor's value [MD201]"]),
        ("graph", ["5 operators; inputs: a = argument a, b = argument b", "call_method   │ sum_1"]),
        (
            "guards",
            ["___guarded_code.valid", "and ___check_tensors(a, ", "# argument b: Tensor float32 (4,) on cpu"],
        ),
        (
            "code",
            ["___graph0, ___graph1 = ", "<ResumeFunction toy_example>", "STORE_FAST ___graph", "COMPARE_OP"],
        ),
        (
            "resume",
            ["from line 11, called with (a, b, x)", "from line 10, called with (a, b, x)", "prologue"],
        ),
    ],
)
def test_one_stage(trace, stage, expected):
    code, out, _ = trace("toy_example", "--stage", stage)
    assert code == 0
    assert [text for text in expected if text not in out] == []
    assert out.count("────") == out.splitlines()[0].count("────")


def test_stages_are_shown_in_the_order_asked_for(trace):
    _, out, _ = trace("toy_example", "--stage=guards,lift")
    assert [line.split(":")[0] for line in out.splitlines() if "────" in line] == ["guards", "lift"]


def test_arguments_of_the_command_line(trace):
    code, out, _ = trace("keywords", "--args", "torch.ones(2), factor=SCALE", "--stage=step,guards")
    assert code == 0
    assert "  0 LOAD_FAST 'x'" in out, "the inlined call is indented"
    assert "factor == 3.0" in out


def test_dotted_names(trace):
    code, out, _ = trace("thing.method", "--args", "torch.ones(2)", "--stage=graph")
    assert code == 0 and "call_function │ mul" in out


def test_example_args_constant(tmp_path, capsys):
    path = tmp_path / "other.py"
    path.write_text("import torch\ndef f(x): return x + 1\nEXAMPLE_ARGS = {'x': torch.ones(3)}\n")
    assert cli.main(["trace", f"{path}:f", "--stage=graph"]) == 0
    assert "1 operators; inputs: x = argument x" in capsys.readouterr().out


def test_a_function_that_is_not_compiled_says_why(trace):
    code, out, _ = trace("plain", "--args", "3", "--stage=graph,guards,code,resume")
    assert code == 0
    assert out.count("not compiled: no tensor operation was met [MD304]") == 3
    _, out, _ = trace("generator", "--stage=graph")
    assert "not compiled: generators, coroutines and async functions are not compiled [MD301]" in out


def test_the_file_is_imported_afresh_each_time(trace, program):
    assert "mul" in trace("helper", "--args", "torch.ones(2)", "--stage=graph")[1].replace("add", "mul")
    program.write_text("import torch\ndef helper(x): return torch.relu(x)\n")
    assert "relu" in trace("helper", "--args", "torch.ones(2)", "--stage=graph")[1]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("toy_exampel", (), "has no 'toy_exampel'; did you mean 'toy_example'?"),
        ("thing.methd", (), "has no 'thing.methd'; did you mean 'method'?"),
        ("SCALE", (), "SCALE in {file} is float, not a function, method or module object"),
        ("Thing", (), "Thing in {file} is type, not a function, method or module object"),
        ("keywords", (), "does not take these arguments: too many positional arguments"),
        ("keywords", ("--args", "1"), "does not take these arguments: missing a required"),
        ("toy_example", ("--args", "1 +"), "--args '1 +' cannot be evaluated: SyntaxError"),
        ("toy_example", ("--args", "nothing"), "--args 'nothing' cannot be evaluated: NameError"),
        (
            "toy_example",
            ("--args", "1, 2, 3"),
            "does not take these arguments: too many positional arguments",
        ),
        ("toy_example", ("--stage", "graf"), "unknown stage 'graf'; did you mean 'graph'?"),
        ("toy_example", ("--stage", ","), "no stage was named; stages are lift, step"),
        ("toy_example", ("--backend", "eagre"), "no backend named 'eagre'; did you mean 'eager'?"),
        ("wrong", (), "wrong raised ValueError: two lines (program.py:"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_2(trace, program, name, options, message):
    code, out, err = trace(name, *options)
    assert (code, out) == (2, "")
    assert err.startswith("minidynamo trace: ") and err.count("\n") == 1
    assert message.format(file=program) in err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py:f", "no file 'nowhere.py'"),
        ("program.py", "'program.py' is not FILE:FUNC"),
        ("program.py:", "'program.py:' is not FILE:FUNC"),
    ],
)
def test_targets_that_are_none(capsys, target, message):
    assert cli.main(["trace", target]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


@pytest.mark.parametrize("source", ["def f(:\n", "import nothing_of_that_name\n", "raise SystemExit(3)\n"])
def test_a_file_that_cannot_be_imported(tmp_path, capsys, source):
    path = tmp_path / "broken.py"
    path.write_text(source)
    assert cli.main(["trace", f"{path}:f"]) == 2
    err = capsys.readouterr().err
    assert "broken.py cannot be imported: " in err and err.count("\n") == 1


def test_a_function_that_needs_arguments(tmp_path, capsys):
    path = tmp_path / "needs.py"
    path.write_text("def f(x): return x\n")
    assert cli.main(["trace", f"{path}:f"]) == 2
    assert (
        "f needs arguments (missing a required argument: 'x'): pass --args, or define"
        in capsys.readouterr().err
    )
    path.write_text("def f(x): return x\nEXAMPLE_ARGS = 3\n")
    assert cli.main(["trace", f"{path}:f"]) == 2
    assert "the example arguments are int; they must be a tuple, a list or a dict" in capsys.readouterr().err
