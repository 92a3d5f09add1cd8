"""The screens of `minidynamo walkthrough`: the example, seven stages, the warm call. Every value shown is of
this run."""

from __future__ import annotations

import inspect
import linecache
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console

from minidynamo import cache, compile_frame, eval_frame, on_miss
from minidynamo.backends.debug import graph_table
from minidynamo.backends.eager import eager
from minidynamo.cli import stages
from minidynamo.cli.stages import Traced
from minidynamo.debug.frames import code_of, compiled_frames
from minidynamo.debug.observe import observe
from minidynamo.debug.report import frame_rows, frames_table, guard_lines, guards_text
from minidynamo.debug.show import place
from minidynamo.guards.check_fn import CheckFunctionManager
from minidynamo.pycode.lift import lift
from minidynamo.pycode.lower import assemble
from minidynamo.translate.emit import emit
from minidynamo.translate.root import translate

EXAMPLE_FILE = "<toy_example.py>"
EXAMPLE = """\
import torch


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b
"""
CALLS, ROUNDS = 100, 10  # for the times of the warm call


def load_example() -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The example as a function whose source tracebacks and listings can show."""
    linecache.cache[EXAMPLE_FILE] = (len(EXAMPLE), None, EXAMPLE.splitlines(keepends=True), EXAMPLE_FILE)
    namespace: dict[str, Any] = {"__name__": "toy_example"}
    exec(compile(EXAMPLE, EXAMPLE_FILE, "exec"), namespace)
    found: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = namespace["toy_example"]
    return found


@dataclass(frozen=True, slots=True)
class Walk:
    """The run that the screens show: the plain function, its arguments, and the observed first call."""

    plain: Callable[..., Any]
    args: tuple[torch.Tensor, torch.Tensor]
    traced: Traced

    @property
    def made(self) -> compile_frame.GuardedCode:
        """The result of the function's own compilation."""
        about = self.traced.compilation
        assert about is not None and about.made is not None
        return about.made

    @property
    def console(self) -> Console:
        return self.traced.console


def walk(console: Console) -> Walk:
    """Compile the example by calling it once."""
    plain = load_example()
    args = (torch.linspace(-1, 1, 10), torch.linspace(-2, 1, 10))
    optimized = eval_frame.optimize("eager", isolate=True)(plain)
    with observe() as seen:
        optimized(*args)
    return Walk(plain, args, Traced(optimized, code_of(plain), seen, console))


@dataclass(frozen=True, slots=True)
class Screen:
    """A row: the function that does the work, what happens in it, and how its result is shown."""

    title: str
    function: Callable[..., Any]
    text: str
    show: Callable[[Walk], None]

    def print(self, walk: Walk) -> None:
        """Heading, function with file:line, explanation, data."""
        walk.console.rule(self.title, align="left")
        walk.console.print(where_is(self.function))
        walk.console.print(f"{self.text}\n")
        self.show(walk)
        walk.console.print()


def where_is(function: Callable[..., Any]) -> str:
    """`module.name  file:line`, from the function itself."""
    name = f"{function.__module__}.{function.__qualname__}"
    return f"{name}  {place(inspect.getsourcefile(function) or '', inspect.getsourcelines(function)[1])}"


def show_example(walk: Walk) -> None:
    """The source, and how its first call went."""
    for number, line in enumerate(EXAMPLE.splitlines(), 1):
        walk.console.print(f"{number:>4}  {line}")
    made = ", ".join(f"{c.compile_id} ({c.frame.code.co_qualname})" for c in walk.traced.seen.compilations)
    walk.console.print(f"\nthe first call compiled, in this order: {made}")


def show_lift(walk: Walk) -> None:
    """Canonical instructions beside the bytecode."""
    stages.show_lift(walk.traced)


def show_translate(walk: Walk) -> None:
    """The last attempt, and why there were others."""
    about = walk.traced.compilation
    assert about is not None
    for attempt in about.attempts[:-1]:
        walk.console.print(f"an attempt before this one stopped at: {attempt.stopped}")
    walk.console.print(
        stages.step_table(about.attempts[-1], "the symbolic stack, instruction by instruction")
    )
    walk.console.print(stages.ending(about))


def show_backend(walk: Walk) -> None:
    """The graph, and what came back for it."""
    about = walk.traced.compilation
    assert about is not None and about.capture is not None and about.capture.graph is not None
    graph = about.capture.graph
    walk.console.print(graph_table(graph.module, f"{graph.ops} operators"))
    walk.console.print(f"the backend of this run: {where_is(eager)}")


def show_emit(walk: Walk) -> None:
    """The statements."""
    stages.show_statements(walk.traced)


def show_assemble(walk: Walk) -> None:
    """Old and new bytecode."""
    walk.console.print(stages.bytecode_table(walk.traced.code, walk.made.code))


def show_guards(walk: Walk) -> None:
    """The check_fn, and its verdict on the frame that it came from."""
    check = walk.made.payload.check
    walk.console.print(guards_text(guard_lines(check)), soft_wrap=True)
    namespace = walk.plain.__globals__
    walk.console.print(
        f"\ncheck_fn(a, b, globals, closure) on these arguments: {check.fn(*walk.args, namespace, None)}"
    )
    other = (walk.args[0].double(), walk.args[1])
    walk.console.print(f"the same with a float64 `a`: {check.fn(*other, namespace, None)}")


def show_cache(walk: Walk) -> None:
    """Entries and their resume functions."""
    walk.console.print(frames_table(frame_rows(walk.traced.optimized), "cache entries after the first call"))


def show_warm(walk: Walk) -> None:
    """Hits, and times."""
    optimized, plain, args = walk.traced.optimized, walk.plain, walk.args
    before, converts = _hits(optimized), cache.stats()["converts"]
    result = optimized(*args)
    converts = cache.stats()["converts"] - converts
    walk.console.print(f"hits per entry before and after one more call: {before} -> {_hits(optimized)}")
    walk.console.print(f"calls of {on_miss.on_miss.__name__} during it: {converts}")
    walk.console.print(f"result equal to plain Python's: {torch.equal(result, plain(*args))}")
    ours, theirs = _microseconds(args, optimized, plain)
    walk.console.print(f"best time per call here: {ours:.1f} µs; plain Python {theirs:.1f} µs")


def _hits(fn: Any) -> list[int]:
    return [entry.hits for _, entry in compiled_frames(fn)]


def _microseconds(args: tuple[Any, ...], *functions: Callable[..., Any]) -> list[float]:
    """The best time per call of each function, rounds interleaved."""
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for number, fn in enumerate(functions):
            begin = time.perf_counter()
            for _ in range(CALLS):
                fn(*args)
            best[number] = min(best[number], (time.perf_counter() - begin) / CALLS * 1e6)
    return best


SCREENS: tuple[Screen, ...] = (
    Screen(
        "the example",
        eval_frame.optimize,
        "optimize(backend) wraps the function in a C object. A call that no cache entry fits reaches "
        "compile_frame with the code object and the values of the arguments. It runs the seven stages that "
        "follow, each a value to a value.",
        show_example,
    ),
    Screen(
        "stage 1: lift",
        lift,
        "CPython's bytecode becomes canonical instructions, the same on every version. Spelling changes, "
        "the layout of the stack never does: so a resume function can enter the original bytecode at any "
        "instruction.",
        show_lift,
    ),
    Screen(
        "stage 2: translate",
        translate,
        "The instructions are executed over trackers instead of values. A tensor operation becomes a graph "
        "node; what a value was read for becomes a guard. What cannot be captured ends the graph: the frame "
        "is traced again from its start with that decision.",
        show_translate,
    ),
    Screen(
        "stage 3: call_backend",
        compile_frame.call_backend,
        "The backend gets the graph as a torch.fx.GraphModule and the example inputs, and gives back a "
        "callable.",
        show_backend,
    ),
    Screen(
        "stage 4: emit",
        emit,
        "Statements of the new code: load what is needed, call the graph, rebuild values, then return or "
        "hand over to a resume function. If the graph raises, the original code runs from its start "
        "(RERUN).",
        show_emit,
    ),
    Screen(
        "stage 5: assemble",
        assemble,
        "The statements become a code object with the signature, name and lines of the user's function.",
        show_assemble,
    ),
    Screen(
        "stage 6: guards",
        CheckFunctionManager.compile_check_fn,
        "Guards become one Python expression. It is compiled to check_fn and run once on the frame that it "
        "came from.",
        show_guards,
    ),
    Screen(
        "stage 7: the cache",
        compile_frame.compile_frame,
        "compile_frame returns GuardedCode(code, check_fn, ...); the C part hangs it on the original code "
        "object as a cache entry. The rest of the function is a resume function per side of the branch, "
        "compiled when it is reached.",
        show_cache,
    ),
    Screen(
        "one warm call",
        on_miss.on_miss,
        "From now on C code evaluates check_fn on the arguments and runs the entry's code. The Python "
        "function named above is what it calls when no entry fits; it is not called here.",
        show_warm,
    ),
)
