"""The tables of the versions: complete, and loadable on each other's Pythons."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from minidynamo.pycode import versions
from minidynamo.pycode.canon import CANON
from minidynamo.pycode.versions.base import Version, without


@pytest.mark.parametrize("name", versions.SUPPORTED.values())
def test_rows(name):
    version = import_module(f"minidynamo.pycode.versions.{name}").VERSION
    assert isinstance(version, Version)
    assert set(version.emit) <= set(CANON)
    assert not set(version.rules) & version.internal
    assert (version.to_bool is None) == (not version.wants_bool)


def test_current():
    module = import_module(f"minidynamo.pycode.versions.{versions.SUPPORTED[sys.version_info[:2]]}")
    assert versions.CURRENT is module.VERSION


def test_unknown_python(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    with pytest.raises(ImportError, match="knows the bytecode of CPython 3.11, 3.12, 3.13, 3.14; this is"):
        versions._current()


def test_without():
    assert without({"a": 1, "b": 2}, "a") == {"b": 2}
    with pytest.raises(KeyError):
        without({"a": 1}, "z")
