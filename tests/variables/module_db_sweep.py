"""Run every module of torch.nn captured, forward and backward, and compare with eager. `python -m tests.variables.module_db_sweep` writes
the table of what is not captured; `--peer` runs torch.compile on those and writes what it captures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

import minidynamo
from tests.graph.op_db_cases import same
from tests.graph.op_db_sweep import ours, peers, quiet, reason_of
from tests.variables import module_db_cases as db

HERE = Path(__file__).parent
TABLE, PEER = HERE / "module_db_table.txt", HERE / "module_db_peer.txt"
HEAD = """\
# Calls of torch.nn's modules that nopython=True does not capture: module, mode and sample, MD code and reason.
# Written by `python -m tests.variables.module_db_sweep`; the nightly test compares.
"""
PEER_HEAD = """\
# Calls of torch.nn's modules that torch.compile {version} (backend eager, fullgraph=True) captures and minidynamo does not:
# module, mode and sample. Written by `python -m tests.variables.module_db_sweep --peer`.
"""


def outcome(case: db.Case, compiler: Callable[..., Any]) -> str | None:
    """ "" when the call is captured and equal, else why not; None when eager raises too."""
    try:
        wanted = db.run(db.program(), case)
    except Exception:  # not a call that works
        return None
    try:
        got = db.run(compiler(db.program()), case)
    except Exception as error:  # the answer
        return reason_of(error)
    return "" if same(wanted, got) else "WRONG"


def rows(cases: Iterable[db.Case], compiler: Callable[..., Any] = ours) -> Iterator[str]:
    """A line for each call that is not captured."""
    with quiet():
        for number, case in enumerate(cases):
            found = outcome(case, compiler)
            if found:
                yield f"{case.name}  {case.label}  {found}"
            if number % 50 == 0:
                minidynamo.reset()


def committed(path: Path = TABLE) -> list[str]:
    """The rows of a table."""
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def main() -> None:
    cases = list(db.cases())
    if "--peer" not in sys.argv:
        TABLE.write_text(HEAD + "".join(f"{row}\n" for row in rows(cases)))
        return
    missed = {tuple(row.split("  ")[:2]) for row in committed()}
    lines = []
    with quiet():
        for case in cases:
            if (case.name, case.label) in missed:
                torch._dynamo.reset()
                if outcome(case, peers) == "":
                    lines.append(f"{case.name}  {case.label}\n")
    PEER.write_text(PEER_HEAD.format(version=torch.__version__.split("+")[0]) + "".join(lines))


if __name__ == "__main__":
    main()
