"""The table of handlers, and of instructions that break the graph with a reason instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...pycode.instruction import Instruction
from ...reasons import EXCEPTION, MISSING_OPCODE, Reason

Handler = Callable[[Any, Instruction], None]
HANDLERS: dict[str, Handler] = {}

# Canonical instructions without a handler. `unsupported` names the instruction; a test holds both tables against canon.
NOT_CAPTURED: dict[str, Reason] = {
    "CHECK_EG_MATCH": EXCEPTION,
    **dict.fromkeys(
        (
            *("LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_LOCALS"),
            *("LOAD_FROM_DICT_OR_DEREF", "LOAD_FROM_DICT_OR_GLOBALS"),
            *(
                "CALL_INTRINSIC_1",
                "CALL_INTRINSIC_2",
                "SETUP_ANNOTATIONS",
                "BUILD_TEMPLATE",
                "BUILD_INTERPOLATION",
            ),
        ),
        MISSING_OPCODE,
    ),
    **dict.fromkeys(
        (
            *("GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "END_ASYNC_FOR", "BEFORE_ASYNC_WITH"),
            "ASYNC_GEN_WRAP",
        ),
        MISSING_OPCODE,
    ),
}


def handles(*opnames: str) -> Callable[[Handler], Handler]:
    """Row of the table. A duplicate row fails at import."""

    def register(handler: Handler) -> Handler:
        for opname in opnames:
            if opname in HANDLERS or opname in NOT_CAPTURED:
                raise ValueError(f"two rows for {opname}")
            HANDLERS[opname] = handler
        return handler

    return register
