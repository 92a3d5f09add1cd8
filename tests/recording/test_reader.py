"""Recordings that are whole, truncated, foreign, torn; what is readable is shown."""

import json

import pytest

from minidynamo.recording.model import build
from minidynamo.recording.reader import Unreadable, expand, parse, read

HEADER = {"event": "header", "schema": "minidynamo/1", "pid": 7, "command": ["a.py"]}
COMPILE = {
    "event": "compile", "n": 1, "id": "0/0", "at": 0.5, "file": "a.py", "line": 1, "function": "f", "resume": False,
    "ops": 2, "guards": [["x", "y"]], "exit": "return", "seconds": 0.25, "stages": {"lift": 0.01}, "backend": "eager",
    "thread": 1, "detail": {},
}  # fmt: skip
SUMMARY = {"event": "summary", "hits": {"1": 9}, "skips": {}, "seconds": 1.0, "exit": 0}


def lines(*records):
    return [json.dumps(record) for record in records]


def test_a_whole_recording():
    records, problems = parse(lines(HEADER, COMPILE, SUMMARY))
    run = build([records])
    assert problems == [] and run.complete and run.compiles[0].hits == 9 and run.exit == 0


def test_one_that_ends_early_is_shown_without_hits():
    text = lines(HEADER, COMPILE)
    records, problems = parse([*text, text[1][:40]])
    run = build([records], problems)
    assert len(run.compiles) == 1 and run.compiles[0].hits is None and not run.complete
    assert problems[0].startswith("1 line cannot be read") and "ends early" in problems[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (["hello"], "not a minidynamo recording"),
        (
            ['{"event": "header", "schema": "minidynamo/9"}'],
            "schema 'minidynamo/9', this version reads 'minidynamo/1'",
        ),
        (["[1, 2]"], "not a minidynamo recording"),
        ([], "empty"),
    ],
)
def test_what_is_no_recording_is_told(text, problem):
    assert parse(text) == ([], [problem])


def test_unknown_records_are_left_out_and_told():
    records, problems = parse(lines(HEADER, {"event": "weather"}, COMPILE, SUMMARY))
    assert [r["event"] for r in records] == ["header", "compile", "summary"]
    assert problems == ["records of unknown kinds are left out: weather"]


def test_files_of_several_processes(tmp_path):
    for pid in (1, 2):
        text = "\n".join(lines({**HEADER, "pid": pid}, COMPILE, SUMMARY))
        (tmp_path / f"t-{pid}.jsonl").write_text(text)
    recordings, problems = read([str(tmp_path / "t-%p.jsonl")])
    run = build(recordings, problems)
    assert [c.pid for c in run.compiles] == [1, 2] and len(run.functions) == 1


def test_a_bad_file_among_good_ones_is_a_problem(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join(lines(HEADER, COMPILE, SUMMARY)))
    (tmp_path / "b.jsonl").write_text("\x00\xff not JSON")
    recordings, problems = read([str(tmp_path / "*.jsonl")])
    assert len(recordings) == 1 and problems[0].endswith("b.jsonl: not a minidynamo recording")


def test_nothing_readable_raises(tmp_path):
    with pytest.raises(Unreadable, match="no recording"):
        expand([str(tmp_path / "none-%p.jsonl")])
    with pytest.raises(Unreadable, match="No such file"):
        read([str(tmp_path / "none.jsonl")])
