"""`minidynamo walkthrough`: a screen per stage, true places, the data of the run."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from minidynamo.cli import main as cli
from minidynamo.cli import walkthrough
from minidynamo.cli.screens import SCREENS, walk, where_is
from minidynamo.debug.show import make_console


@pytest.fixture(scope="module")
def shown() -> list[str]:
    """The screens of one run, as text."""
    out = io.StringIO()
    run = walk(make_console(out))
    texts = []
    for screen in SCREENS:
        out.truncate(0)
        out.seek(0)
        screen.print(run)
        texts.append(out.getvalue())
    return texts


def test_the_example_seven_stages_and_the_warm_call():
    titles = [screen.title for screen in SCREENS]
    assert titles[0] == "the example" and titles[-1] == "one warm call"
    assert [title.split(":")[0] for title in titles[1:-1]] == [f"stage {n}" for n in range(1, 8)]


@pytest.mark.parametrize("number", range(len(SCREENS)))
def test_each_screen_names_a_true_place(shown, number):
    function = SCREENS[number].function
    found = re.search(rf"^{re.escape(function.__module__)}\.\S+  (\S+):(\d+)$", shown[number], re.MULTILINE)
    assert found, shown[number][:400]
    line = Path(found[1]).read_text().splitlines()[int(found[2]) - 1]
    assert line.strip().startswith(("def ", "@")), line


@pytest.mark.parametrize(
    ("number", "texts"),
    [
        (0, ["if b.sum() < 0:", "0/0 (toy_example)"]),
        (1, ["POP_JUMP_IF_FALSE", "RETURN_VALUE"]),
        (2, ["stopped at: branch on a tensor's value [MD201]", "abs_1 float32(10,)"]),
        (3, ["5 operators", "minidynamo.backends.eager.eager"]),
        (4, ["___graph0, ___graph1 = ", "<ResumeFunction toy_example>"]),
        (5, ["original: ", "STORE_FAST ___graph"]),
        (6, ["on these arguments: True", "the same with a float64 `a`: False"]),
        (7, ["0/0 toy_example", "branch on a tensor's value"]),
        (8, ["[0, 0] -> [1, 1]", "calls of on_miss during it: 0", "equal to plain Python's: True"]),
    ],
)
def test_screens_show_the_data_of_the_run(shown, number, texts):
    assert [text for text in texts if text not in shown[number]] == []


def test_the_command_does_not_wait_without_a_terminal(capsys):
    assert cli.main(["walkthrough"]) == 0
    out = capsys.readouterr().out
    assert [screen.title for screen in SCREENS if f"{screen.title} ──" not in out] == []


def test_a_reader_can_stop(monkeypatch, capsys):
    answers = iter(["", "q"])
    monkeypatch.setattr(walkthrough, "ask", lambda: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert walkthrough.run([]) == 0
    out = capsys.readouterr().out
    assert "stage 1: lift" in out and "stage 2" not in out
    assert walkthrough.run(["--no-pager"]) == 0
    assert "one warm call" in capsys.readouterr().out


def test_the_end_of_input_stops():
    def no_more(prompt: str) -> str:
        raise EOFError

    assert walkthrough.ask(no_more) == "q"
    assert walkthrough.ask(lambda prompt: " Q ") == "q"
    assert walkthrough.ask(lambda prompt: "") == ""


def test_places_follow_the_function():
    assert re.fullmatch(
        r"test_walkthrough\.\S+  .*test_walkthrough\.py:\d+", where_is(no_place).rpartition("cli.")[2]
    )


def no_place() -> None:
    """Its own line is what `where_is` finds."""
