"""A compilation that begins with what an earlier one of the same code left behind, in place of a trace."""

from __future__ import annotations

from collections.abc import Iterable

from . import config, markers
from .backends.calling import backend_for
from .cache import Validity
from .entry import FrameInput, Made, Options, Record, Stages, guards_for
from .exc import InternalError
from .guards.again import check_again
from .guards.rows import GuardRow
from .translate.capture import Facts
from .translate.emit import emit
from .translate.emit_again import emit_again
from .translate.plan import SkipFrame
from .translate.replay import Differs, Replay
from .translate.root import translate

MAY_CHANGE = ("TENSOR_MATCH", "EQUALS_MATCH", "SAME_MATCH")  # guards that a replay makes anew
VALUES = frozenset(
    (*MAY_CHANGE, "CONSTANT_MATCH", "DISTINCT", "DUPLICATE_INPUT", "FUNCTION_MATCH", "GLOBAL_STATE", "LENGTH", "NO_ALIAS", "STATE_READ")
)  # fmt: skip


def compile_again(inp: FrameInput, opts: Options, earlier: Record, stages: Stages) -> Made | None:
    """The compilation of a frame that differs from that of an earlier entry in sizes and numbers only, without a trace; None where that
    cannot be told. Under MINIDYNAMO_VERIFY=1 the trace is made as well, and compared."""
    template, facts, before = earlier.template, earlier.facts, earlier.output
    if template is None or earlier.guard_nn_modules is not config.guard_nn_modules:
        return None
    if earlier.marks != markers.changes() or opts.one_graph and facts.break_ is not None:
        return None
    check, listing = earlier.check, earlier.graph
    failed = check.failed_row(inp.values)
    if listing is None or failed is not None and check.rows[failed].kind not in MAY_CHANGE:
        return None
    try:
        replay = Replay(template, listing, check.rows, inp.values)
    except Differs:
        return None
    targets = tuple([handle.target for handle in before.handles])
    if any(target is None for target in targets):  # the entry is gone
        return None
    validity = Validity()
    loaded = before.loaded or None
    fitting = check_again(guards_for((), inp, validity), check, replay.changed, loaded)
    if fitting is None:
        return None
    graph = replay.graph()
    stages.done("translate", steps=0, ops=graph.ops, guards=len(fitting.rows))
    compiled, _ = backend_for(graph, facts, opts.backend, opts.compile_id, inp.where)
    stages.done("backend", ops=graph.ops)
    output, code = emit_again(before, earlier.code, (compiled, *targets[1:]))
    stages.done("emit", statements=len(output.body))
    made = Made(graph, output, code, fitting, validity, facts)
    if config.verify and replay.is_told_apart():
        compare_with_trace(inp, opts, made)
    return made


def of_values(rows: Iterable[GuardRow]) -> set[GuardRow]:
    """Those that say what a value is. (Where an attribute was found may be another place, if it is guarded there by its value.)"""
    return {row for row in rows if row.kind in VALUES}


def compare_with_trace(inp: FrameInput, opts: Options, made: Made) -> None:
    """Raises InternalError naming the first thing that a trace of the frame makes in another way."""
    try:
        capture = translate(inp.values, inp.code, dict(made.facts.decisions), for_compiler=False)
    except SkipFrame as skip:
        raise InternalError(
            f"a compilation of {inp.where} is replayed that is not to be: {skip.reason}"
        ) from skip
    try:
        graph = capture.graph
        output = emit(capture, inp.code, None if graph is None else graph.module.forward)
        rows = guards_for(capture.guards, inp, Validity()).rows().rows
        pairs = {
            "graph": (str(made.graph and made.graph.listing), str(graph and graph.listing)),
            "code": (made.graph and made.graph.module.code, graph and graph.module.code),
            "guards": (of_values(made.check.rows), of_values(rows)),
            "facts": (made.facts, Facts.of(capture)),
            "recipe": (made.output.direct and made.output.direct[1:], output.direct and output.direct[1:]),
            "loads": (made.output.loaded, output.loaded),
        }
    finally:
        capture.release()
    for name, (one, other) in pairs.items():
        if one != other:
            raise InternalError(
                f"a replayed compilation of {inp.where} differs from a trace in its {name}: {one} and {other}"
            )
