"""`minidynamo run`: the program behaves as under the interpreter; the summary is on stderr; gates give exit code 3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

STORM = """
import torch, minidynamo

@minidynamo.optimize("eager")
def scaled(x, lr):
    return x * lr

for i in range(3):
    scaled(torch.ones(2), 1.0 / (i + 1))
print("done")
"""


def write(folder: Path, text: str, name: str = "prog.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def start(folder: Path, *arguments: str, plain: bool = False, **env: str) -> subprocess.CompletedProcess[str]:
    """`minidynamo run ARGUMENTS`, or `python ARGUMENTS`, in `folder`."""
    command = [sys.executable, *([] if plain else ["-m", "minidynamo", "run"]), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache"), **env}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


SHOWS = """
import sys, os
def f(): pass
print(sys.argv, __name__, __file__, __package__, sys.path[0], f.__code__.co_filename, __cached__)
print(sys.modules["__main__"].__dict__ is globals(), type(__loader__).__name__)
print(__spec__ and (__spec__.name, __spec__.origin, __spec__.parent), sorted(n for n in globals() if n.startswith("__")))
"""


@pytest.mark.parametrize("name", ["inner/prog.py", "./prog.py", "pack", "pack/", "absolute"])
def test_a_script_finds_itself_as_under_the_interpreter(tmp_path, name):
    for place in ("inner/prog.py", "prog.py", "pack/__main__.py"):
        write(tmp_path, SHOWS, place)
    name = str(tmp_path / "prog.py") if name == "absolute" else name
    arguments = (name, "-q", "--width", "a b", "-m")
    ours, plain = start(tmp_path, *arguments), start(tmp_path, *arguments, plain=True)
    assert plain.returncode == 0 and ours.stdout == plain.stdout


def test_tracebacks_name_files_as_under_the_interpreter(tmp_path):
    write(tmp_path, "def f():\n    raise ValueError('mine')\nf()\n")
    assert start(tmp_path, "prog.py").stderr == start(tmp_path, "prog.py", plain=True).stderr


def test_the_standard_input_is_no_script(tmp_path):
    done = start(tmp_path, "-", "x")
    assert (done.returncode, done.stderr) == (2, "minidynamo run: no file '-'\n")


@pytest.mark.slow
def test_processes_that_run_the_same_script_are_one_row(tmp_path):
    write(
        tmp_path,
        """
        import subprocess, sys, torch, minidynamo
        f = minidynamo.optimize("eager")(lambda x, n: x + n)
        f(torch.ones(3), 1), f(torch.ones(3), 2)
        if len(sys.argv) == 1:
            subprocess.run([sys.executable, sys.argv[0], "child"], check=True)
        """,
    )
    done = start(tmp_path, "-o", "p-%p.jsonl", "prog.py")
    assert len(list(tmp_path.glob("p-*.jsonl"))) == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("prog.py:3 <lambda> MD105 n 1->2 at=prog.py:4:39 compiles=2 ")


def test_a_module_finds_itself_as_under_the_interpreter(tmp_path):
    text = "import sys\nprint(sys.argv[1:], __name__, __package__, __spec__.name, sys.path[0] == __import__('os').getcwd())"
    write(tmp_path, text, "pack/__main__.py")
    write(tmp_path, "", "pack/__init__.py")
    write(tmp_path, text, "pack/part.py")
    for name in ("pack", "pack.part"):
        ours, plain = start(tmp_path, "-q", "-m", name, "x"), start(tmp_path, "-m", name, "x", plain=True)
        assert (ours.stdout, ours.returncode) == (plain.stdout, 0)


def test_a_folder_and_a_command(tmp_path):
    write(tmp_path, "import part; print(part.__name__)", "app/__main__.py")
    write(tmp_path, "", "app/part.py")
    assert start(tmp_path, "app").stdout == "part\n"
    assert start(tmp_path, "-c", "import sys; print(sys.argv)", "1").stdout == "['-c', '1']\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("import sys; sys.exit('bye')", 1),
        ("raise SystemExit", 0),
        ("1/0", 1),
        ("x = (", 1),
    ],
)
def test_exit_codes_are_the_programs(tmp_path, text, code):
    write(tmp_path, text)
    ours, plain = start(tmp_path, "-q", "prog.py"), start(tmp_path, "prog.py", plain=True)
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout) == (code, "")


def test_a_traceback_shows_the_programs_frames_only(tmp_path):
    write(tmp_path, "def f():\n    raise ValueError('no')\nf()\n")
    ours, plain = start(tmp_path, "-q", "prog.py"), start(tmp_path, "prog.py", plain=True)
    assert ours.stderr == plain.stderr.replace(str(tmp_path) + "/", "") or ours.stderr == plain.stderr


def test_the_programs_excepthook_is_used(tmp_path):
    write(tmp_path, "import sys\nsys.excepthook = lambda *e: print('hooked', e[0].__name__)\n1/0")
    done = start(tmp_path, "-q", "prog.py")
    assert (done.stdout, done.returncode) == ("hooked ZeroDivisionError\n", 1)


def test_threads_run_to_their_end(tmp_path):
    write(
        tmp_path,
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
    )
    done = start(tmp_path, "prog.py")
    assert (done.stdout, done.stderr) == ("late\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what to run? SCRIPT, -m MODULE or -c CODE"),
        (("nowhere.py",), "no file 'nowhere.py'"),
        (("-m", "no_such_module_at_all"), "no module 'no_such_module_at_all'"),
        (("--htlm", "x", "prog.py"), "unrecognized arguments: --htlm"),
        (("--width", "wide", "prog.py"), "argument --width: invalid int value: 'wide'"),
        (("--html", "no/where.html", "prog.py"), "no folder 'no' for --html"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path, arguments, message):
    write(tmp_path, "print('ran')")
    done = start(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_summary_names_the_cause(tmp_path):
    write(tmp_path, STORM)
    done = start(tmp_path, "prog.py")
    assert (done.stdout, done.returncode) == ("done\n", 0)
    (line,) = [line for line in done.stderr.splitlines() if "MD106" in line]
    assert line.startswith(
        "prog.py:4 scaled MD106 lr 0.5->0.3333333333333333 at=prog.py:9:27 compiles=2 lost_s="
    )
    assert 'fix="scaled(torch.ones(2), torch.tensor(1.0 / (i + 1)))"' in line


@pytest.mark.slow
def test_a_table_a_block_and_a_page(tmp_path):
    write(tmp_path, STORM)
    wide = start(tmp_path, "--color", "always", "--width", "120", "prog.py").stderr
    assert "3 compiles (2 avoidable)" in wide and "\x1b[" in wide and "old → new" in wide
    narrow = start(tmp_path, "--color", "always", "--width", "60", "-v", "prog.py").stderr
    assert "   change 0.5 → 0.3333333333333333" in narrow
    assert "passed    prog.py:9     scaled(torch.ones(2), 1.0 / (i + 1))" in narrow
    table = narrow.partition("passed    ")[0]
    assert all(
        len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) <= 60 for line in table.splitlines()[:6]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gate", "code"),
    [
        (("--fail-on-recompile", "1"), 3),
        (("--fail-on-recompile", "2"), 0),
        (("--fail-on-graph-break", "0"), 0),
        (("--max-compile-seconds", "0"), 3),
    ],
)
def test_gates(tmp_path, gate, code):
    write(tmp_path, STORM)
    done = start(tmp_path, "-q", *gate, "prog.py")
    assert done.returncode == code and done.stdout == "done\n"
    assert done.stderr.count("\n") == (code == 3)


@pytest.mark.slow
def test_the_programs_own_failure_wins_over_a_gate(tmp_path):
    write(tmp_path, STORM + "raise SystemExit(5)")
    assert start(tmp_path, "--fail-on-recompile", "0", "prog.py").returncode == 5


@pytest.mark.slow
def test_limit_gate_and_only(tmp_path):
    write(tmp_path, STORM.replace("range(3)", "range(12)"))
    done = start(tmp_path, "--fail-on-limit", "-q", "prog.py")
    assert done.returncode == 3 and "the cache limit was reached by scaled" in done.stderr
    other = start(tmp_path, "--only", "other_*", "--fail-on-recompile", "0", "prog.py")
    assert other.returncode == 0 and "MD106" not in other.stderr


@pytest.mark.slow
def test_files_and_the_default_recording(tmp_path):
    write(tmp_path, STORM)
    done = start(tmp_path, "-q", "--html", "o.html", "--json", "-", "--chrome", "o.trace", "prog.py")
    assert done.stdout.startswith("done\n{")
    assert json.loads(done.stdout.partition("\n")[2])["causes"][0]["code"] == "MD106"
    assert "<!doctype html>" in (tmp_path / "o.html").read_text()
    assert json.loads((tmp_path / "o.trace").read_text())["traceEvents"]
    assert (tmp_path / "cache" / "minidynamo" / "last.jsonl").exists()


@pytest.mark.slow
def test_as_torch_compile_and_backend(tmp_path):
    write(tmp_path, STORM.replace('@minidynamo.optimize("eager")', "@torch.compile"))
    done = start(tmp_path, "--as-torch-compile", "--backend", "eager", "prog.py")
    assert done.returncode == 0 and "MD106" in done.stderr
    wrong = start(tmp_path, "--backend", "eagre", "prog.py")
    assert wrong.returncode == 2 and "eager" in wrong.stderr and wrong.stderr.count("\n") == 1


@pytest.mark.slow
def test_processes_write_files_of_their_own_and_report_merges_them(tmp_path):
    child = """
import os
for _ in range(2):
    pid = os.fork()
    if not pid:
        scaled(torch.ones(3), 5.0)
        os._exit(0)
    os.waitpid(pid, 0)
"""
    write(tmp_path, STORM + child)
    done = start(tmp_path, "-o", "trace-%p.jsonl", "prog.py")
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("trace-*.jsonl"))) == 3
    assert "killed" in done.stderr  # children ended by os._exit write no summary


@pytest.mark.slow
def test_the_environment_records_any_process(tmp_path):
    write(tmp_path, STORM)
    done = start(tmp_path, "prog.py", plain=True, MINIDYNAMO_TRACE="t-%p.jsonl", MINIDYNAMO_REDACT="1")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    (path,) = tmp_path.glob("t-*.jsonl")
    text = path.read_text()
    assert "torch.ones" not in text and str(tmp_path) not in text
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["event"] for row in rows] == ["header", "compile", *["recompile", "compile"] * 2, "summary"]
    assert rows[2]["causes"][0]["new"] == "0.5"
