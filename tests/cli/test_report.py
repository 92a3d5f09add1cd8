"""The commands that read recordings: every format, one-line errors, no torch, quick."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
import torch

import minidynamo
from minidynamo.cli import main as cli

EXIT_UNREADABLE = 4


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A recording with a cause, a graph break, a skipped frame and the limit."""
    path = tmp_path_factory.mktemp("recording") / "run.jsonl"

    def scaled(x, lr):
        y = x * lr
        if y.sum() > 0:
            y = y + 1
        return y

    def silent(n):
        return n + 1

    with minidynamo.record(str(path)):
        f = minidynamo.optimize("eager")(scaled)
        for i in range(10):
            with __import__("warnings").catch_warnings(action="ignore"):
                f(torch.ones(2), 1.0 / (i + 1))
        for _ in range(5):
            minidynamo.optimize("eager")(silent)(1)
    return str(path)


@pytest.fixture(autouse=True)
def nothing_recorded_yet(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def out(capsys, *arguments):
    assert cli.main(list(arguments)) == 0
    return capsys.readouterr().out


def test_plain_is_the_default_where_no_terminal_is(capsys, recording):
    lines = out(capsys, "report", recording).splitlines()
    assert " MD106 lr " in lines[0] and "compiles=7" in lines[0]
    assert any(" MD201 break calls=" in line for line in lines)
    assert any(" MD115 limit=8 " in line for line in lines)
    assert any(" MD304 skip " in line for line in lines)


def test_rich(capsys, recording):
    text = out(capsys, "report", recording, "--format", "rich", "--width", "120")
    assert "old → new" in text and "graph breaks: 1 place" in text and "limit reached after" in text


def test_json(capsys, recording):
    found = json.loads(out(capsys, "report", recording, "--format", "json"))
    assert found["schema"] == "minidynamo-report/1" and found["recompiles"] == 7
    (cause,) = found["causes"]
    assert (cause["code"], cause["name"], cause["compiles"]) == ("MD106", "lr", 7)


def test_markdown(capsys, recording):
    text = out(capsys, "report", recording, "--format", "md")
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count(" | ") for line in tables[:3]}) <= 2 and "`lr`" in text


def test_github(capsys, recording):
    lines = out(capsys, "report", recording, "--format", "github").splitlines()
    assert lines[0].startswith("::warning file=tests/cli/test_report.py,line=")
    assert {line.partition(" ")[0] for line in lines} == {"::warning", "::notice", "::error"}
    assert all(line.count("::") >= 2 and "\n" not in line for line in lines)


def test_junit(capsys, recording):
    suite = ET.fromstring(out(capsys, "report", recording, "--format", "junit").encode())
    assert suite.attrib["tests"] == str(len(suite)) and suite.attrib["failures"] == "1"
    assert suite.find("testcase/failure").attrib["type"] == "MD106"


def test_html_to_a_file(capsys, recording, tmp_path):
    assert out(capsys, "report", recording, "--format", "html", "-o", str(tmp_path / "o.html")) == ""
    assert "</html>" in (tmp_path / "o.html").read_text()
    assert out(capsys, "report", recording, "--html", str(tmp_path / "p.html")) == ""
    assert (tmp_path / "p.html").read_text() == (tmp_path / "o.html").read_text()


@pytest.mark.parametrize("what", ["1", "0/1", "MD106", "md106", "scaled"])
def test_why(capsys, recording, what):
    text = out(capsys, "why", what, "-i", recording)
    assert "MD106 a float argument varies" in text
    assert "  changed   lr  " in text and "1.0 / (i + 1)" in text and "^^^" in text
    assert "fix       f(torch.ones(2), torch.tensor(1.0 / (i + 1)))" in text


def test_why_of_a_break(capsys, recording):
    text = out(capsys, "why", "a", "-i", recording)
    assert "MD201 branch on a tensor's value" in text and "if y.sum() > 0:" in text


def test_diff_of_entries_and_of_runs(capsys, recording):
    text = out(capsys, "diff", "0/0", "0/1", "-i", recording)
    assert "  - argument lr: 1.0    lr == 1.0" in text and "  + argument lr: 0.5    lr == 0.5" in text
    text = out(capsys, "diff", recording, recording)
    assert "avoidable 7 -> 7" in text and "= " in text and "\n- " not in text


@pytest.mark.slow
def test_graph_code_timeline_repro(capsys, recording, tmp_path):
    assert "mul" in out(capsys, "graph", "0/0", "-i", recording)
    ET.fromstring(out(capsys, "graph", "0/0", "--svg", "-i", recording))
    assert out(capsys, "graph", "0/0", "--dot", "-i", recording).startswith('digraph "0/0 ')
    code = out(capsys, "code", "0/0", "-i", recording)
    assert "BINARY_OP" in code and "lr == 1.0" in code and "statements" in code
    events = json.loads(out(capsys, "timeline", recording))["traceEvents"]
    assert any("scaled" in event["name"] for event in events)
    path = tmp_path / "repro.py"
    assert out(capsys, "repro", "0/0", "-i", recording, "-o", str(path)) == ""
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "compiled (tensor(" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("report",), EXIT_UNREADABLE, "nothing is recorded yet: `minidynamo run SCRIPT` records a program"),
        (("report", "nowhere.jsonl"), EXIT_UNREADABLE, "nowhere.jsonl: No such file or directory"),
        (("report", "setup.cfg"), EXIT_UNREADABLE, "setup.cfg: not a minidynamo recording"),
        (("report", "--format", "jsno"), 2, "invalid choice: 'jsno'"),
        (("why", "scalde", "-i", "RECORDING"), EXIT_UNREADABLE, "did you mean 'scaled'?"),
        (("graph", "9/9", "-i", "RECORDING"), EXIT_UNREADABLE, "no compilation '9/9'; there are 0/0, "),
        (("diff", "0/0", "RECORDING"), 2, "two recordings or two entries, not one of each"),
        (("completion", "tcsh"), 2, "invalid choice: 'tcsh'"),
    ],
)
def test_errors_are_one_line(capsys, recording, arguments, code, message):
    assert cli.main([recording if text == "RECORDING" else text for text in arguments]) == code
    found = capsys.readouterr()
    assert found.out == "" and message in found.err and found.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["report"], ["why", "1", "-i"], ["timeline"], ["graph", "0/0", "-i"], ["code", "0/0", "-i"]]
)
def test_no_torch_and_quick(recording, command):
    program = (
        "import sys; sys.modules['torch'] = sys.modules['minidynamo._C'] = None\n"
        f"from minidynamo.__main__ import main; sys.exit(main({[*command, recording]!r}))"
    )
    times = []
    for _ in range(3):
        began = os.times()
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        ended = os.times()
        times.append(
            ended.children_user + ended.children_system - began.children_user - began.children_system
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert min(times) < 0.3  # of processor time, which a busy machine does not stretch


def test_a_reader_that_goes_away(recording):
    command = [sys.executable, "-m", "minidynamo", "report", recording]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_colour_and_width_of_the_environment(capsys, recording, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "70")
    text = out(capsys, "report", recording)
    assert "\x1b[" in text and "   change " in text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in out(capsys, "report", recording)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_command(capsys, shell):
    text = out(capsys, "completion", shell)
    assert all(name in text for name in cli.available())
    assert "fail-on-recompile" in text


def test_completion_is_valid_bash(capsys):
    text = out(capsys, "completion", "bash")
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_file_names_the_nearest_recording(capsys, recording):
    wrong = recording.replace("run.jsonl", "runs.jsonl")
    assert cli.main(["report", wrong]) == EXIT_UNREADABLE
    assert capsys.readouterr().err == (
        f"minidynamo report: {wrong}: No such file or directory; did you mean {recording!r}?\n"
    )


def test_where_nothing_is_to_be_mended_the_lines_are_empty_and_stderr_says_so(capsys, tmp_path):
    path = str(tmp_path / "fine.jsonl")
    with minidynamo.record(path):
        minidynamo.optimize("eager")(lambda x: x + 1)(torch.ones(2))
    assert cli.main(["report", path]) == 0
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("minidynamo report: nothing to mend: ")
    assert told.err.count("\n") == 1 and "1 compile" in told.err


def test_markdown_cells_are_code_only_where_they_are_code(capsys, tmp_path):
    path = str(tmp_path / "run.jsonl")

    class Settings:
        step = 0

    def f(x, text):
        if Settings.step % 2 == 0:
            return x + len(text)
        return x

    with minidynamo.record(path):
        g = minidynamo.optimize("eager")(f)
        for Settings.step, text in enumerate(("`a`|b", "``c")):
            g(torch.ones(2), text)
    lines = [
        line for line in out(capsys, "report", "--format", "md", path).splitlines() if line.startswith("| ")
    ]
    cells = [line.replace("\\|", "/").split(" | ") for line in lines]
    assert {len(row) for row in cells} == {8}
    assert any("``` '``c' ```" in line and "`` '`a`/b' ``" in line.replace("\\|", "/") for line in lines)


def test_the_rest_behind_a_break_without_tensors_is_no_frame_to_tell_of():
    def f(x):
        y = x + 1
        print("", end="")
        return y

    with minidynamo.record() as found:
        assert torch.equal(minidynamo.optimize("eager")(f)(torch.ones(2)), torch.ones(2) + 1)
    assert [skip.code for skip in found.run.skips if skip.code != "MD303"] == [] and len(
        found.graph_breaks
    ) == 1
