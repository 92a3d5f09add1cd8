"""The dispatcher: one table, modules imported only when their command runs, one-line errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from minidynamo.cli import main as cli


def test_help_lists_exactly_the_commands_that_are_there(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    listed = {
        line.split()[0] for line in text.partition("commands:\n")[2].splitlines() if line.startswith("  ")
    }
    assert listed == set(cli.available())
    assert "doctor" in listed


def test_a_command_without_its_module_is_not_listed(monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "nowhere", cli.Command("minidynamo.cli.nowhere_at_all", "no module"))
    assert "nowhere" not in cli.available()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["docter"], "minidynamo: unknown command 'docter'; did you mean 'doctor'?\n"),
        (["--colour", "doctor"], "minidynamo: unrecognized arguments: --colour\n"),
        (["doctor", "--nonsense"], "minidynamo doctor: unrecognized arguments: --nonsense\n"),
        (["reprot"], "minidynamo: unknown command 'reprot'; did you mean 'repro' or 'report'?\n"),
        (
            ["run", "--fail-on-recompil", "0", "x.py"],
            "minidynamo run: unrecognized arguments: --fail-on-recompil; did you mean '--fail-on-recompile'?\n",
        ),
        (
            ["report", "--sort=costs"],
            "minidynamo report: argument --sort: invalid choice: 'costs' (choose from 'cost', 'count'); did you mean 'cost'?\n",
        ),
        (
            ["explain", "MD10"],
            "minidynamo explain: unknown code 'MD10'; MD101, MD102, MD103, MD104, MD105, MD106, MD107, MD108, ... begin with it\n",
        ),
        (["run", "-o", "/no/folder/x.jsonl", __file__], "minidynamo run: no folder '/no/folder' for -o\n"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(capsys, argv, message):
    assert cli.main(argv) == 2
    assert capsys.readouterr() == ("", message)


def test_without_a_command_help_is_printed_and_exit_is_2(capsys):
    assert cli.main([]) == 2
    assert "commands:" in capsys.readouterr().out


def test_a_command_gets_its_arguments_and_gives_the_exit_code(monkeypatch):
    seen: list[list[str]] = []
    monkeypatch.setattr("minidynamo.cli.doctor.run", lambda argv: seen.append(argv) or 7)
    assert cli.main(["doctor", "--plain", "x"]) == 7
    assert seen == [["--plain", "x"]]


def test_an_error_of_minidynamo_is_one_line(monkeypatch, capsys):
    from minidynamo.exc import InvalidBackend

    def run(argv: list[str]) -> int:
        raise InvalidBackend("no backend\nnamed 'indutcor'")

    monkeypatch.setattr("minidynamo.cli.doctor.run", run)
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr().err == "minidynamo: no backend named 'indutcor'\n"


def test_version(capsys):
    import minidynamo

    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"minidynamo {minidynamo.__version__}\n"


def test_help_imports_neither_torch_nor_rich():
    program = (
        "import sys; from minidynamo.__main__ import main; code = main(['--help'])\n"
        "heavy = {'torch', 'rich', 'bytecode', 'minidynamo._C'} & sys.modules.keys()\n"
        "sys.exit(str(heavy) if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error():
    """`minidynamo --help | head -0`: nothing on stderr."""
    program = "import sys; from minidynamo.__main__ import main; sys.exit(main(['doctor', '--plain']))"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141
