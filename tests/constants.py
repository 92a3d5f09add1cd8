"""Hypothesis strategies of constants that have a literal, and of sources."""

from __future__ import annotations

import keyword

import torch
from hypothesis import strategies as st

from minidynamo.sources import (
    AttrSource,
    BuiltinSource,
    CellSource,
    ClosureSource,
    CodeSource,
    DefaultSource,
    DictItemSource,
    DictKeySource,
    GlobalSource,
    ItemSource,
    KwDefaultSource,
    LocalSource,
    ModulesSource,
    SizeSource,
    StorageOffsetSource,
    StrideSource,
    TypeSource,
    WeakRefSource,
    is_local_name,
)

SPECIAL_FLOATS = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), -float("nan"), 5e-324, 1.5]
HOSTILE = [
    "'",
    '"',
    "\\",
    "\n",
    "\0",
    "{0}",
    "}{",
    "x y",
    "é",
    "\ud800",
    "___globals",
    "' + evil() + '",
    "__dict__",
]

text = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8))
ints = st.one_of(
    st.integers(),
    st.integers(2**1990, 2**2010),
    st.sampled_from([2100, 4200]).map(lambda digits: -(10**digits)),
)


def _scalars(nan: bool):
    floats = st.one_of(
        st.floats(allow_nan=nan), st.sampled_from([f for f in SPECIAL_FLOATS if nan or f == f])
    )
    return st.one_of(
        st.sampled_from([None, True, False, Ellipsis, NotImplemented]),
        ints,
        floats,
        st.builds(complex, floats, floats),
        text,
        st.binary(max_size=8),
        st.sampled_from([torch.float32, torch.int64, torch.complex64, torch.strided, torch.channels_last]),
        st.sampled_from([torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")]),
        st.builds(torch.Size, st.lists(st.integers(0, 9), max_size=3)),
        st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
    )


def _nested(scalars):
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3)),
        max_leaves=6,
    )


constants = st.one_of(
    _nested(_scalars(nan=True)), st.builds(slice, ints | st.none(), ints | st.none(), st.none() | ints)
)
keys = _nested(_scalars(nan=False))

local_names = st.one_of(
    st.sampled_from(["x", "self", "len", "type", "match", "_", "__x", "___stack0", "___free3", "переменная"]),
    st.from_regex(r"[a-z_]{1,6}", fullmatch=True),
).filter(lambda name: is_local_name(name) and not keyword.iskeyword(name))
index = st.integers(0, 9)

roots = st.one_of(
    st.builds(LocalSource, local_names),
    st.builds(GlobalSource, text),
    st.builds(BuiltinSource, text),
    st.builds(ClosureSource, st.just("k"), index),
    st.builds(ModulesSource),
)


def _steps(base):
    return st.one_of(
        st.builds(
            AttrSource, base, st.one_of(text, st.sampled_from(["__dict__", "_parameters", "__code__"]))
        ),
        st.builds(ItemSource, base, keys),
        st.builds(DictItemSource, base, keys),
        st.builds(DictKeySource, base, index),
        st.builds(TypeSource, base),
        st.builds(WeakRefSource, base),
        st.builds(CodeSource, base),
        st.builds(DefaultSource, base, index),
        st.builds(KwDefaultSource, base, text),
        st.builds(CellSource, base, index),
        st.builds(SizeSource, base, index),
        st.builds(StrideSource, base, index),
        st.builds(StorageOffsetSource, base),
    )


sources = st.recursive(roots, _steps, max_leaves=4)
