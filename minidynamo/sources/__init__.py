"""Where values came from: one frozen `Source` per path. See `base`."""

from minidynamo.sources.base import (
    ChainedSource,
    FrameValues,
    GuardSource,
    Source,
    check_local_name,
    is_local_name,
)
from minidynamo.sources.functions import (
    CellSource,
    CodeSource,
    DefaultSource,
    FunctionPartSource,
    KwDefaultSource,
)
from minidynamo.sources.roots import (
    BuiltinSource,
    ClosureSource,
    ConstantSource,
    GlobalSource,
    GlobalsSource,
    LocalSource,
    ModulesSource,
    StateSource,
)
from minidynamo.sources.steps import (
    PLAIN_MEMBERS,
    AttrSource,
    DictItemSource,
    DictKeySource,
    ItemSource,
    TypeSource,
    WeakRefSource,
    has_plain_items,
    item_source,
)
from minidynamo.sources.tensors import SizeSource, StorageOffsetSource, StrideSource

__all__ = [
    "AttrSource",
    "BuiltinSource",
    "CellSource",
    "ChainedSource",
    "ClosureSource",
    "CodeSource",
    "ConstantSource",
    "DefaultSource",
    "DictItemSource",
    "DictKeySource",
    "FrameValues",
    "FunctionPartSource",
    "GlobalSource",
    "GlobalsSource",
    "GuardSource",
    "ItemSource",
    "KwDefaultSource",
    "LocalSource",
    "ModulesSource",
    "PLAIN_MEMBERS",
    "SizeSource",
    "Source",
    "StateSource",
    "StorageOffsetSource",
    "StrideSource",
    "TypeSource",
    "WeakRefSource",
    "check_local_name",
    "is_local_name",
    "has_plain_items",
    "item_source",
]
