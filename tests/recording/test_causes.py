"""From a failed guard to a code, a name, old and new value."""

import pytest

from minidynamo.events import GuardFailure
from minidynamo.recording.causes import classify


def failure(kind, name, expected, actual, root="argument", member=None, type_="", actual_type="", owner=""):
    member = member or ("name", name)
    return GuardFailure(
        kind, "", name, name, root, name, member, expected, actual, type_, actual_type, None, owner
    )


CASES = [
    (failure("TENSOR_MATCH", "x", "size (4, 8)", "size (5, 8)"), ("MD101", "x.size(0)", "4", "5")),
    (failure("TENSOR_MATCH", "x", "size (4, 8)", "size (4, 9)"), ("MD101", "x.size(1)", "8", "9")),
    (failure("TENSOR_MATCH", "x", "size (4, 8)", "size (5, 9)"), ("MD101", "x.size()", "(4, 8)", "(5, 9)")),
    (failure("TENSOR_MATCH", "x", "size (4,)", "size (4, 1)"), ("MD101", "x.size()", "(4,)", "(4, 1)")),
    (
        failure("TENSOR_MATCH", "x", "stride (8, 1)", "stride (1, 4)"),
        ("MD102", "x.stride", "(8, 1)", "(1, 4)"),
    ),
    (
        failure("TENSOR_MATCH", "x", "dtype float32", "dtype float64"),
        ("MD103", "x.dtype", "float32", "float64"),
    ),
    (failure("TENSOR_MATCH", "x", "device cpu", "device meta"), ("MD103", "x.device", "cpu", "meta")),
    (
        failure("TENSOR_MATCH", "x", "requires_grad False", "requires_grad True"),
        ("MD104", "x.requires_grad", "False", "True"),
    ),
    (
        failure("TENSOR_MATCH", "x", "Tensor float32 (4,) on cpu", "7"),
        ("MD109", "x", "Tensor float32 (4,) on cpu", "7"),
    ),
    (failure("EQUALS_MATCH", "n", "1", "2", type_="int", actual_type="int"), ("MD105", "n", "1", "2")),
    (
        failure("EQUALS_MATCH", "n", "'a'", "'b'", type_="str", actual_type="str"),
        ("MD105", "n", "'a'", "'b'"),
    ),
    (
        failure("SAME_MATCH", "n", "0.0", "0.5", type_="float", actual_type="float"),
        ("MD106", "n", "0.0", "0.5"),
    ),
    (
        failure("CONSTANT_MATCH", "n", "None", "3", type_="NoneType", actual_type="int"),
        ("MD109", "n", "None", "3"),
    ),
    (failure("EQUALS_MATCH", "k", "1", "2", root="global"), ("MD107", "k", "1", "2")),
    (failure("EQUALS_MATCH", "k", "1", "2", root="closure"), ("MD107", "k", "1", "2")),
    (failure("EQUALS_MATCH", "k", "1", "2", root="default"), ("MD107", "k", "1", "2")),
    (failure("EQUALS_MATCH", "c.k", "1", "2", member=("attr", "k")), ("MD107", "c.k", "1", "2")),
    (failure("EQUALS_MATCH", "a[0]", "1", "2", member=("item", "0")), ("MD105", "a[0]", "1", "2")),
    (
        failure("FUNCTION_MATCH", "fn", "code of a (f.py:1)", "code of b (f.py:2)"),
        ("MD108", "fn", "a (f.py:1)", "b (f.py:2)"),
    ),
    (failure("ID_MATCH", "fn", "the same Op", "another Op"), ("MD108", "fn", "the same Op", "another Op")),
    (failure("TYPE_MATCH", "n", "type int", "type float"), ("MD109", "n", "int", "float")),
    (failure("LENGTH", "items", "length 2", "length 3"), ("MD110", "len(items)", "2", "3")),
    (
        failure("DICT_KEYS", "d", "keys ('a',)", "keys ('a', 'b')"),
        ("MD110", "d", "keys ('a',)", "keys ('a', 'b')"),
    ),
    (
        failure("DUPLICATE_INPUT", "y", "the object of argument x", "another object"),
        ("MD111", "y", "the object of argument x", "another object"),
    ),
    (
        failure("GLOBAL_STATE", "s", "the state", "grad mode on -> off", root="state"),
        ("MD104", "grad mode", "on", "off"),
    ),
    (
        failure(
            "GLOBAL_STATE",
            "s",
            "the state",
            "autocast on cpu off -> on; autocast cache off -> on",
            root="state",
        ),
        ("MD112", "autocast on cpu", "off", "on"),
    ),
    (
        failure("GLOBAL_STATE", "s", "the state", "default dtype float32 -> float64", root="state"),
        ("MD112", "default dtype", "float32", "float64"),
    ),
    (failure("OPTIONS", "backend", "eager", "debug", root="other"), ("MD116", "backend", "eager", "debug")),
    (failure("VALID", "this entry", "alive", "died", root="other"), ("MD117", "this entry", "alive", "died")),
    (failure("SOMETHING_NEW", "x", "a", "b"), ("MD110", "x", "a", "b")),
]


@pytest.mark.parametrize(("given", "wanted"), CASES, ids=lambda value: getattr(value, "kind", ""))
def test_a_cause(given, wanted):
    change = classify(given)
    assert (change.reason.code, change.name, change.old, change.new) == wanted
