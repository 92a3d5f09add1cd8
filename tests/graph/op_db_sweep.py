"""Run the calls of torch's operator database captured and compare them with eager. `python -m tests.graph.op_db_sweep` writes the
table of what is not captured; `--peer` runs torch.compile instead and writes what it captures."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

import minidynamo
from minidynamo import config
from tests.graph import op_db_cases as db

HERE = Path(__file__).parent
TABLE, PEER = HERE / "op_db_table.txt", HERE / "op_db_peer.txt"
HEAD = """\
# Calls of torch's operator database that nopython=True does not capture: entry/variant, sample, MD code and reason.
# Written by `python -m tests.graph.op_db_sweep`; the nightly test compares.
"""
PEER_HEAD = """\
# Calls of torch's operator database that torch.compile {version} (backend eager, fullgraph=True) captures and minidynamo does not:
# entry/variant, sample, what the capture is. Written by `python -m tests.graph.op_db_sweep --peer`.
"""
SPECIALIZED = "compiled anew for each value in the tensor {name}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings and logs of the operators."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings(), config.patch(internal_errors="raise", verify=False):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        torch.set_num_threads(threads)


def ours(fn: Callable[..., Any]) -> Callable[..., Any]:
    return minidynamo.optimize("eager", nopython=True)(fn)


def peers(fn: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(fn, backend="eager", fullgraph=True)


def outcome(case: db.Case, call: db.Call, compiler: Callable[..., Any]) -> str | None:
    """ "" when the call is captured and equal, else why not; None when eager raises too."""
    try:
        wanted = db.run(db.program(case, call), case, call)
    except Exception:  # not a call that works
        return None
    try:
        got = db.run(compiler(db.program(case, call)), case, call)
    except Exception as error:  # the answer
        return reason_of(error)
    return "" if db.same(wanted, got) else "WRONG"


def reason_of(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason is not None and isinstance(error, minidynamo.exc.Unsupported):
        while reason.inner is not None:
            reason = reason.inner
        first = reason.text.splitlines()[0]
        return f"{reason.code} {re.sub(r'[^ ]*/site-packages/', '', first)[:110]}".rstrip()
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__} {first}"[:120]


def rows(cases: Iterable[db.Case], compiler: Callable[..., Any] = ours) -> Iterator[str]:
    """A line for each call that is not captured."""
    with quiet():
        for number, case in enumerate(cases):
            for call in db.calls(case):
                found = outcome(case, call, compiler)
                if found:
                    yield f"{case.name}  {call.label}  {found}"
            if number % 50 == 0:
                minidynamo.reset()


def committed() -> list[str]:
    """The rows of the table."""
    return [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]


def what_it_is(case: db.Case, call: db.Call) -> str:
    """Whether the peer's capture depends on what is in a small tensor of integers: it is called with another number there."""
    for at, given in enumerate(call.args):
        if not isinstance(given, torch.Tensor) or given.dtype is not torch.int64 or given.ndim:
            continue
        graphs: list[Any] = []

        def counted(gm: Any, inputs: Any, graphs: list[Any] = graphs) -> Any:
            graphs.append(gm)
            return gm.forward

        fn = torch.compile(db.program(case, call), backend=counted, fullgraph=True)
        for value in (1, 2, 3):
            fn(*call.args[:at], torch.tensor(value), *call.args[at + 1 :], **call.kwargs)
        if len(graphs) == 3:
            return SPECIALIZED.format(name=f"a{at - 1}" if at else "x")
    return "captured"


def main() -> None:
    cases = list(db.cases(db.database()))
    if "--peer" not in sys.argv:
        TABLE.write_text(HEAD + "".join(f"{row}\n" for row in rows(cases)))
        return
    missed = {tuple(row.split("  ")[:2]) for row in committed()}
    lines = []
    with quiet():
        for case in (case for case in cases if case.name in {name for name, _ in missed}):
            for call in db.calls(case):
                if (case.name, call.label) in missed and outcome(case, call, peers) == "":
                    lines.append(f"{case.name}  {call.label}  {what_it_is(case, call)}\n")
    PEER.write_text(PEER_HEAD.format(version=torch.__version__.split("+")[0]) + "".join(lines))


if __name__ == "__main__":
    main()
