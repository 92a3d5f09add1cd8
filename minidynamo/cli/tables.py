"""`minidynamo tables [NAME]`: the tables that decide what is captured and how. Without NAME: all of them.

On a terminal a table; elsewhere one greppable line per row, `TABLE<tab>cell<tab>cell...`. Exit codes: 0; 1
when torch or the native extension is missing; 2 for an unknown table.
"""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING

from minidynamo.cli.main import OneLineParser

if TYPE_CHECKING:
    from minidynamo.cli.table_rows import TableOf

PROGRAM = "minidynamo tables"


def run(argv: list[str]) -> int:
    """The command."""
    parser = OneLineParser(prog=PROGRAM, description="The tables that decide what is captured and how.")
    parser.add_argument("name", nargs="?", help="one table (default: all); --list names them")
    parser.add_argument("--list", action="store_true", help="only the names, sizes and meanings")
    options = parser.parse_args(argv)
    try:
        from minidynamo.cli.table_rows import TABLES
    except ImportError as error:
        print(f"{PROGRAM}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    if options.name is not None and options.name not in TABLES:
        near = difflib.get_close_matches(options.name, TABLES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"tables are {', '.join(TABLES)}"
        print(f"{PROGRAM}: unknown table {options.name!r}; {hint}", file=sys.stderr)
        return 2
    wanted = TABLES if options.name is None else {options.name: TABLES[options.name]}
    for name, row in wanted.items():
        if options.list:
            print(f"{name:<18} {len(row.rows()):>5}  {row.doc}")
        else:
            _print(name, row)
    return 0


def _print(name: str, row: TableOf) -> None:
    if not sys.stdout.isatty():
        for cells in row.rows():
            print(name, *(" ".join(cell.split()) for cell in cells), sep="\t")
        return
    from minidynamo.debug.show import make_console, table

    console = make_console()
    console.print(table(f"{name}: {row.doc}", row.columns, row.rows()))
    console.print()
