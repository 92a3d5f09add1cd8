"""The corpus: functions of many shapes, each with arguments to call it with, as `CASES`."""

from __future__ import annotations

from importlib import import_module

from tests.pycode.cases.support import CASES as CASES

FILES = """expressions calls unpacking loops comprehensions closures classes exceptions managers matching
names nested""".split()
for _name in FILES:
    import_module(f"tests.pycode.cases.{_name}")
