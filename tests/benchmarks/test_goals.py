"""Every goal is worked out from a run: a document with known figures, and what the table says of it."""

from __future__ import annotations

import pytest

from benchmarks import results
from benchmarks.goals import GOALS, goals
from benchmarks.schema import faults
from benchmarks.suites import models as suite


def ratio(value: float, a: float = 10e-6, calls: int = 1) -> dict:
    """A ratio of B over A with one per cent around it; A takes `a` seconds."""
    return {
        "value": value,
        "low": value * 0.99,
        "high": value * 1.01,
        "pairs": 30,
        "a": a * calls,
        "b": a * calls * value,
    }


def row(name: str, suite: str = "micro", **figures) -> dict:
    return {"name": name, "suite": suite, "family": ""} | figures


def cold(ms: float, over_peer: float) -> dict:
    return {
        "ms": ms, "low": ms * 0.99, "high": ms * 1.01, "rounds": 5, "stages": {"translate": ms * 0.7, "guards": ms * 0.3},
        "peer_ms": ms / over_peer, "over_peer": over_peer, "over_low": over_peer, "over_high": over_peer,
    }  # fmt: skip


def warm(**ratios: dict) -> dict:
    return {"floor": 0.01, **ratios}


@pytest.fixture
def document() -> dict:
    """A run in which the peer's bare overhead is 10 µs, a break costs 0.4 µs, and so on."""
    rows = [
        row("x plus 1", warm=warm(eager=ratio(1.1), bare=ratio(1.02), peer=ratio(0.5, 20e-6)), cold=cold(1.2, 0.04)),
        row("one operator, peer without its guard profiler", cold=cold(1.2, 0.12)),
        row(
            "100 linear layers",
            guards={"rows": 800, "ns": 1300.0, "peer_ns": 26000.0, "over_peer": ratio(0.05)},
            warm=warm(eager=ratio(0.6)),
        ),
        row("1000 linear layers", guards={"rows": 8000, "ns": 1300.0 + 900 * 7.5}),
        row("100 activations", guards={"rows": 400, "ns": 100.0}),
        row("1000 activations", guards={"rows": 4000, "ns": 100.0 + 900 * 1.0}),
        row(
            "rotating through 8 entries",
            warm=warm(eager=ratio(1.05, 2e-6, 8), peer=ratio(0.2, 12e-6, 8), calls=8),
        ),
        row("1 graph break", warm=warm(eager=ratio(1.1), peer=ratio(0.2, 50e-6))),
        row("20 graph breaks", warm=warm(eager=ratio(1.43, 20e-6), peer=ratio(0.2, 200e-6))),
        row("second instance of a module", counters={"recompiles": 0}),
        row("x plus n", recompiles={
            "first_ms": 2.0, "ms": {"1": 0.9}, "told_ms": {"1": 1.0}, "miss_us": {"1": 20.0}, "rounds": 5,
            "over_first": {"value": 0.45, "low": 0.44, "high": 0.46},
        }),
        row("fib of 16 in a compiled region", "python", warm=warm(eager=ratio(1.01))),
        row("MLP", "models", warm=warm(eager=ratio(0.6), bare=ratio(1.01)), cold=cold(40.0, 0.1)),
        row("GPT", "models", warm=warm(eager=ratio(0.6), bare=ratio(1.10)), cold=cold(80.0, 0.2)),
    ]  # fmt: skip
    for family, each in (("operators", 0.05), ("unrolled iterations", 0.009)):
        for size in (100, 300):
            rows.append(
                row(f"{size} {family}", "scaling", size=size, cold=cold(each * size, 0.1))
                | {"family": family}
            )
    made = results.new({"python": "3.11", "torch": "2.13"}, None, False) | {"workloads": rows}
    made["scaling"] = [
        {"family": "guards", "sizes": [100, 3000], "calls": [1, 30], "calls_exponent": 1.0, "ms": [1.0, 40.0], "ms_exponent": 1.08},
    ]  # fmt: skip
    memory = {
        "KiB a frame": 11.0,
        "KiB a further entry": 9.0,
        "objects a frame": 74.0,
        "objects a further entry": 60.0,
    }
    made["process"] = {
        "neutrality": ratio(1.004) | {"floor": 0.01},
        "memory": {"minidynamo": memory | {"parts": {"torch/fx": 0.4}}},
        "leak": {"minidynamo": {"rounds": 200, "objects": 0, "bytes": 0}},
        "start": {"import torch": 1.5, "import minidynamo": 0.05, "first compile": 0.25},
        "not_run": {"jit": "the package jax is not installed"},
    }
    assert list(faults(made)) == []
    return made


EXPECTED = {
    "warm call, one operator, over the bare graph": ("0.200 µs", "reached"),
    "the same over the peer's overhead": ("0.0200", "reached"),
    "warm call of every model over the bare graph": ("1.10", "missed"),
    "guard check of 100 linear layers over the peer's": ("0.0500", "reached"),
    "guard check per module at 1,000 over 2 ns + 6.5 ns a parameter": ("0.500", "reached"),
    "rotating through 8 entries: overhead over the peer's": ("0.0100", "reached"),
    "a graph break, warm": ("0.400 µs", "reached"),
    "a graph break, warm, over the peer's": ("0.0543", "reached"),
    "Python frames skipped inside a compiled region over plain": ("1.01", "reached"),
    "plain Python outside of compiled calls": ("1.00", "within noise"),
    "cold compile of every model over the peer's": ("0.200", "missed"),
    "cold compile, x + 1": ("1.20 ms", "reached"),
    "the same over the peer's": ("0.0400", "reached"),
    "the same over the peer's without its guard profiler": ("0.120", "reached"),
    "cold compile per operator of a straight line over the peer's": ("0.100", "reached"),
    "cold compile per pure-Python bytecode over the peer's": ("0.100", "reached"),
    "a recompilation over the first compilation": ("0.450", "reached"),
    "x + 1, whole call, over jax.jit(x + 1)": ("", "not measured"),
    "exponent of the growth of compile time": ("1.08", "missed"),
    "import minidynamo over import torch": ("0.0500 s of CPU", "reached"),
    "first compile of a process over the import": ("0.250 s of CPU", "missed"),
    "memory of an entry with one operator": ("11 KiB", "reached"),
    "collectable objects of such an entry": ("74 objects", "reached"),
    "objects left by 200 rounds of compile and reset": ("0 objects", "reached"),
    "a second instance of a module class": ("0 recompilations", "reached"),
}


def test_every_goal_is_worked_out(document):
    found = {one["what"]: (one["measured"], one["verdict"]) for one in goals(document)}
    assert found == EXPECTED


def test_notes_say_what_a_figure_is_made_of(document):
    notes = {one["what"]: one["note"] for one in goals(document)}
    assert notes["cold compile of every model over the peer's"] == "GPT: translate 70%, guards 30%; MLP 0.100"
    assert notes["x + 1, whole call, over jax.jit(x + 1)"] == "the package jax is not installed"
    assert "torch/fx 40%" in notes["memory of an entry with one operator"]
    assert notes["a graph break, warm"] == "between 1 and 20 breaks; the peer 7.37 µs"


def test_an_empty_run_has_no_figure_for_any_goal():
    empty = results.new({"python": "3.11", "torch": "2.13"}, None, False)
    assert {one["verdict"] for one in goals(empty)} == {"not measured"} and len(goals(empty)) == len(GOALS)


def test_the_models_of_the_goals_are_workloads():
    """Those of transformers by name; the hand-written ones are rows of the same suite."""
    assert {"BERT", "GPT-2", "Llama", "T5", "ViT of transformers", "Whisper", "Mamba"} <= set(suite.TINY)
