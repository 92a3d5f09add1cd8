"""One compilation: seven stages, each a value to a value. Nothing here touches globals or the cache."""

from __future__ import annotations

from .backends.calling import backend_for, call_backend
from .cache import Validity
from .compile_again import compile_again
from .entry import FrameInput, GuardedCode, Made, Options, Record, Stages, finish, guards_for
from .pycode.lift import lift, unlift
from .pycode.lower import assemble
from .reasons import unsupported_error
from .translate.capture import Break, Facts
from .translate.emit import emit
from .translate.plan import SkipFrame
from .translate.root import translate

__all__ = ["FrameInput", "GuardedCode", "Options", "Record", "call_backend", "compile_frame"]


TRIED = 3  # newest entries of a frame that one for other sizes or numbers may begin with


def compile_frame(inp: FrameInput, opts: Options) -> GuardedCode:
    """One compilation, each line a value to a value. Raises SkipFrame, Unsupported (one_graph), BackendCompilerFailed."""
    stages = Stages(inp, opts)
    for earlier in opts.earlier[: -1 - TRIED : -1]:
        made = compile_again(inp, opts, earlier, stages)
        if made is not None:
            return finish(inp, opts, made, stages)
    ir = lift(inp.code)
    stages.done("lift", instructions=len(ir.instructions))
    capture = translate(inp.values, inp.code, for_compiler=opts.backend.needs_meta)
    try:
        ops = capture.graph.ops if capture.graph is not None else 0
        stages.done("translate", steps=capture.steps, ops=ops, guards=len(capture.guards))
        if opts.one_graph and isinstance(capture.exit, Break):
            if capture.exit.reason.is_own_error():
                raise SkipFrame(capture.exit.reason, capture.exit.cause, mark=False)
            raise unsupported_error(inp.code.co_qualname, capture.exit.reason, capture.exit.cause)
        facts = Facts.of(capture)
        compiled, backend_guards = backend_for(capture.graph, facts, opts.backend, opts.compile_id, inp.where)
        stages.done("backend", ops=ops)
        output = emit(capture, inp.code, compiled)
        stages.done("emit", statements=len(output.body))
        code = assemble(inp.code, output.body)
        stages.done("assemble", bytes=len(code.co_code))
        validity = Validity()
        check = guards_for(capture.guards + backend_guards, inp, validity).compile_check_fn(
            output.loaded or None
        )
        return finish(inp, opts, Made(capture.graph, output, code, check, validity, facts), stages)
    finally:
        capture.release()
        unlift(inp.code)
