"""torch's operator database through nopython=True: results, strides, gradients' requirements and what is written into arguments are
eager's, and what is not captured is what the table says, no more and no less."""

from __future__ import annotations

import pytest

from tests.graph import op_db_cases as db
from tests.graph import op_db_sweep as sweep

SAMPLED = 14  # every so many entries


def compare(cases: list[db.Case]) -> None:
    names = {case.name for case in cases}
    expected = [row for row in sweep.committed() if row.split("  ")[0] in names]
    assert list(sweep.rows(cases)) == expected


def test_the_table_names_entries_and_codes():
    """Nothing in it is wrong, or is a fault of minidynamo: every row is a graph break with its code."""
    rows = [row.split("  ") for row in sweep.committed()]
    assert rows
    assert all(len(row) == 3 and row[2].startswith("MD") for row in rows)


def test_nothing_is_captured_by_the_peer_alone_but_what_it_reads_while_tracing():
    """torch.compile makes a number in a tensor of the program's a constant, and compiles anew for the next one; minidynamo breaks."""
    peers = [line.split("  ") for line in sweep.PEER.read_text().splitlines() if not line.startswith("#")]
    codes = {tuple(row.split("  ")[:2]): row.split("  ")[2][:5] for row in sweep.committed()}
    assert all(what == sweep.SPECIALIZED.format(name="a0") for _, _, what in peers)
    assert [codes[name, sample] for name, sample, _ in peers] == ["MD203", "MD203"]


@pytest.mark.slow
def test_a_sample_of_the_database():
    compare(list(db.cases(db.database()))[::SAMPLED])


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_whole_database():
    compare(list(db.cases(db.database())))
