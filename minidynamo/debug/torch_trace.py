"""Compilations as records of torch's structured log (TORCH_TRACE), which tlparse reads: `minidynamo run --torch-trace DIR`."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch._guards import CompileContext, CompileId
from torch._logging import trace_structured

from .. import events


def start(directory: str) -> Callable[[], None]:
    """Write the compilations from now on to a log in `directory`; the result ends that."""
    os.makedirs(directory, exist_ok=True)
    handler = logging.FileHandler(
        os.path.join(directory, f"minidynamo_{os.getpid()}.log"), mode="w", encoding="utf-8"
    )
    handler.setFormatter(torch._logging._internal.TorchLogsFormatter(trace=True))
    logger = torch._logging._internal.trace_log
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    remove = events.subscribe(Structured())

    def stop() -> None:
        remove()
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
        handler.close()

    return stop


class Structured:
    """A listener that turns events into structured records."""

    def __init__(self) -> None:
        self.reasons: dict[str, list[str]] = {}
        self.breaks: dict[str, events.GraphBreak] = {}

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.Recompile):
            self.reasons[event.compile_id] = [f"{e}: {part}: {a} -> {b}" for e, part, a, b in event.failures]
        elif isinstance(event, events.GraphBreak):
            self.breaks[event.compile_id] = event
        elif isinstance(event, events.Compiled):
            self.compiled(event)

    def compiled(self, event: events.Compiled) -> None:
        """One compilation: start, graph, guards, reasons, metrics, timeline."""
        frame, _, number = event.compile_id.partition("/")
        context = CompileContext(CompileId(frame_id=int(frame), frame_compile_id=int(number)))
        stack = [
            {
                "line": event.where.line,
                "name": event.where.function,
                "filename": _interned(event.where.filename),
            }
        ]
        with torch._guards.compile_context(context):
            trace_structured("dynamo_start", lambda: {"stack": stack})
            if event.graph:
                code = (
                    event.made.graph.code
                    if event.made is not None and event.made.graph is not None
                    else event.graph
                )
                trace_structured("dynamo_output_graph", lambda: {"sizes": {}}, payload_fn=lambda: code)
            trace_structured("dynamo_cpp_guards_str", payload_fn=lambda: "\n".join(event.guards))
            reasons = self.reasons.pop(event.compile_id, None)
            if reasons:
                _artifact("recompile_reasons", reasons)
            broke = self.breaks.pop(event.compile_id, None)
            trace_structured("compilation_metrics", lambda: _metrics(event, broke))
            trace_structured("chromium_event", payload_fn=lambda: json.dumps(_slice(event)))


def _artifact(name: str, value: Any) -> None:
    trace_structured(
        "artifact", lambda: {"name": name, "encoding": "json"}, payload_fn=lambda: json.dumps(value)
    )


def _interned(filename: str) -> int:
    from torch._logging.structured import intern_string

    return intern_string(filename)


def _metrics(event: events.Compiled, broke: events.GraphBreak | None) -> dict[str, Any]:
    """The fields that tlparse shows."""
    return {
        "compile_id": event.compile_id,
        "frame_key": event.compile_id.partition("/")[0],
        "co_name": event.where.function.rpartition(".")[2],
        "co_filename": event.where.filename,
        "co_firstlineno": event.where.line,
        "cache_size": int(event.compile_id.partition("/")[2]),
        "accumulated_cache_size": 0,
        "guard_count": len(event.guards),
        "graph_op_count": event.ops,
        "graph_node_count": event.ops,
        "graph_input_count": len(event.made.inputs) if event.made is not None else 0,
        "start_time": time.time() - event.seconds,
        "entire_frame_compile_time_s": event.seconds,
        "backend_compile_time_s": None,
        "fail_type": None,
        "fail_reason": None,
        "restart_reasons": [f"{broke.text} [{broke.code}]"] if broke is not None else [],
        "dynamo_time_before_restart_s": 0.0,
        "has_guarded_code": True,
        "non_compliant_ops": [],
        "compliant_custom_ops": [],
    }


def _slice(event: events.Compiled) -> dict[str, Any]:
    begin = (time.time() - event.seconds) * 1e6
    common = {"cat": "minidynamo", "pid": os.getpid(), "tid": 0, "ph": "X"}
    return {
        **common,
        "name": event.where.function,
        "ts": begin,
        "dur": event.seconds * 1e6,
        "args": {"id": event.compile_id},
    }
