"""Every module of torch.nn through nopython=True, forward and backward, in training and evaluation: results, gradients, buffers and
random numbers are eager's, and what is not captured is what the table says, no more and no less."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
import torch

from tests.variables import module_db_cases as db
from tests.variables import module_db_sweep as sweep

SAMPLED, FEW = 12, 5  # every so many cases


def compare(cases: Iterable[db.Case]) -> None:
    chosen = list(cases)
    names = {(case.name, case.label) for case in chosen}
    expected = [row for row in sweep.committed() if tuple(row.split("  ")[:2]) in names]
    assert list(sweep.rows(chosen)) == expected


def test_the_table_names_modules_and_codes():
    """Nothing in it is wrong, or is a fault of minidynamo: every row is a graph break with its code."""
    rows = [row.split("  ") for row in sweep.committed()]
    assert rows
    assert all(len(row) == 3 and row[2].startswith("MD") for row in rows)


def test_a_few_modules():
    compare(itertools.islice(db.more(), 0, None, FEW))


@pytest.mark.slow
def test_a_sample_of_the_modules():
    compare(itertools.islice(db.cases(), 0, None, SAMPLED))


@pytest.mark.nightly
def test_every_class_is_called():
    modules = {
        name
        for name, value in vars(torch.nn).items()
        if isinstance(value, type) and issubclass(value, torch.nn.Module)
    }
    assert modules - db.covered() == set(db.NO_LAYERS)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_module():
    compare(db.cases())
