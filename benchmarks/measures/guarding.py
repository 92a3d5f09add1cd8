"""What guards cost: the check of an entry against the peer's, and one guard of each kind."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Any

import torch

from minidynamo.cache import Validity
from minidynamo.guards.check_fn import CheckFn
from minidynamo.guards.lower import lower
from minidynamo.guards.native import native_program

from ..budget import Share
from ..sampling import Call, Effort, paired
from ..workloads import Case
from .subject import Subject, compilations, compiled_by_torch, forget, optimized

WARM_CHECKS = 8  # a program that has held twice keeps a snapshot of what rarely changes


def guards(subject: Subject) -> dict[str, Any] | None:
    """Nanoseconds of an entry's check, and over the peer's where it has one on the same values. None without a single entry."""
    case = subject.workload.case()
    if case.step is not None:
        return None
    forget()
    with compilations() as made:
        case.caller(optimized(case))()
    if len(made) != 1:
        return None
    check = made[0].entry.payload.check
    ours = checking(check, check.native, check.arguments(made[0].frame.values))
    figures: dict[str, Any] = {"rows": len(check.rows)}
    theirs = peer_check(case) if subject.peer and case.peer else None
    ratio = paired(theirs or ours, ours, subject.effort, subject.share)
    if not (ours() and (theirs is None or theirs())):
        raise AssertionError("guards that held do not hold any more: their check was cut short")
    figures["ns"] = ratio.b * 1e9
    if theirs is not None:
        figures["peer_ns"] = ratio.a * 1e9
        figures["over_peer"] = asdict(ratio)
    return figures


def checking(check: CheckFn, program: Any, arguments: tuple[Any, ...]) -> Call:
    """A call of a native guard program, warm. Raises AssertionError when it does not hold."""
    run = program if program is not None else check.fn
    for _ in range(WARM_CHECKS):
        if not run(*arguments):
            raise AssertionError("the guards do not hold on the values that they were made from")
    return lambda: run(*arguments)


def peer_check(case: Case) -> Call | None:
    """The guards of the peer's one entry, called with the frame's values as its own hook does."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    case.caller(compiled_by_torch(case))()
    function = case.fn.forward if isinstance(case.fn, torch.nn.Module) else case.fn
    owner = getattr(function, "__self__", None)
    plain = inspect.unwrap(getattr(function, "__func__", function))
    entries = _debug_get_cache_entry_list(plain.__code__)
    if len(entries) != 1:
        return None
    bound = inspect.signature(plain).bind(*(() if owner is None else (owner,)), *case.args, **case.kwargs)
    bound.apply_defaults()
    values, check = dict(bound.arguments), entries[0].guard_manager.check
    for name, cell in zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True):
        values[name] = cell.cell_contents
    return (lambda: check(values)) if check(values) else None


def kinds(cases: dict[str, Case], effort: Effort, share: Share) -> list[dict[str, Any]]:
    """Per kind of guard: nanoseconds that one costs in a warm check, taken from the program that has most of the kind, with and
    without them. What a snapshot stands for costs next to nothing."""
    best: dict[str, tuple[int, str, CheckFn, tuple[Any, ...]]] = {}
    for name, case in cases.items():
        forget()
        with compilations() as made:
            case.caller(optimized(case))()
        for one in made[:1]:
            check = one.entry.payload.check
            arguments = check.arguments(one.frame.values)
            if check.native is None or not check.native(
                *arguments
            ):  # the program has changed what it was called with
                continue
            for kind in {row.kind for row in check.rows}:
                count = sum(row.kind == kind for row in check.rows)
                if kind not in best or count > best[kind][0]:
                    best[kind] = count, name, check, arguments
    found = []
    for index, (kind, (count, name, check, arguments)) in enumerate(sorted(best.items())):
        part = share.part(len(best) - index)
        found.append(
            {"kind": kind, "count": count, "program": name}
            | cost(check, arguments, kind, count, effort, part)
        )
    return found


def cost(
    check: CheckFn, arguments: tuple[Any, ...], kind: str, count: int, effort: Effort, share: Share
) -> dict[str, float]:
    """The difference that the rows of a kind make, per row, with its 95 % interval."""
    programs = []
    for rows in (tuple(row for row in check.rows if row.kind != kind), check.rows):
        program = native_program(
            lower(rows, check.names),
            len(check.names),
            check.compile_text,
            builtins=check.builtins,
            validity=Validity(),
            witness=None,
        )
        programs.append(checking(check, program, arguments))
    ratio = paired(programs[0], programs[1], effort, share)
    scale = ratio.a * 1e9 / count
    return {name: (getattr(ratio, name) - 1) * scale for name in ("value", "low", "high")} | {
        "share": 1 - 1 / ratio.value
    }
