"""`minidynamo tables`: every table is there, whole and greppable."""

from __future__ import annotations

import re

import pytest

from minidynamo.cli import main as cli
from minidynamo.cli.table_rows import TABLES
from minidynamo.pycode.canon import CANON

WANTED = (
    *(
        "handlers",
        "not_captured",
        "plain_ops",
        "wrappers",
        "predicates",
        "builtins",
        "pure",
        "torch_functions",
    ),
    *("metadata", "guards", "reasons", "libraries", "canon", "backends", "config", "log_topics"),
)


def test_the_tables():
    assert tuple(TABLES) == WANTED


@pytest.mark.parametrize("name", WANTED)
def test_rows_fit_their_columns(name):
    table = TABLES[name]
    rows = table.rows()
    assert rows and {len(row) for row in rows} == {len(table.columns)}
    assert all(isinstance(cell, str) for row in rows for cell in row)
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("name", [name for name in WANTED if "where" in TABLES[name].columns])
def test_places_are_files_of_the_package(name):
    at = TABLES[name].columns.index("where")
    wrong = [row for row in TABLES[name].rows() if not re.search(r"minidynamo/\S+\.py:\d+$", row[at])]
    assert wrong == []


def test_every_canonical_instruction_is_in_one_of_two_tables():
    handled, refused = ({row[0] for row in TABLES[name].rows()} for name in ("handlers", "not_captured"))
    assert not handled & refused
    assert handled | refused == set(CANON)


def test_piped_output_is_one_line_per_row(capsys):
    assert cli.main(["tables", "guards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(TABLES["guards"].rows())
    assert lines[0].split("\t")[:2] == ["guards", "TYPE_MATCH"]


def test_all_tables_and_their_list(capsys):
    assert cli.main(["tables"]) == 0
    assert [*dict.fromkeys(line.split("\t")[0] for line in capsys.readouterr().out.splitlines())] == list(
        WANTED
    )
    assert cli.main(["tables", "--list"]) == 0
    listed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(name, int(size)) for name, size, *_ in listed] == [(n, len(t.rows())) for n, t in TABLES.items()]


def test_on_a_terminal_it_is_a_table(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "140")
    assert cli.main(["tables", "backends"]) == 0
    out = capsys.readouterr().out
    assert "registered backends" in out and "━" in out and "eager" in out


def test_an_unknown_table(capsys):
    assert cli.main(["tables", "handler"]) == 2
    assert capsys.readouterr() == (
        "",
        "minidynamo tables: unknown table 'handler'; did you mean 'handlers'?\n",
    )
