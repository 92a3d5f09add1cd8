"""The goals of the project, each worked out from one run: goal, measured, interval, A/A noise, and whether it is reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

NO_FIGURE = "this run has no such figure"
Document = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A figure with what is known of its uncertainty.

    value, low, high: the figure and its interval; unit: for people; floor: A/A noise of the runs that it comes from
    note: what it was taken from, and where the rest goes
    """

    value: float
    low: float | None = None
    high: float | None = None
    unit: str = ""
    floor: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """what: the figure; limit: it is to be at most this; text: the limit for people; find: None when the run has no such figure;
    part: where the run keeps it outside of workloads (`process`)."""

    what: str
    limit: float
    text: str
    find: Callable[[Document], Found | None]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One row of the table, as text."""

    what: str
    goal: str
    measured: str
    interval: str
    floor: str
    verdict: str
    note: str


def goals(document: Document) -> list[dict[str, str]]:
    """The table, in the order of GOALS."""
    return [asdict(judged(goal, goal.find(document), absent(document, goal))) for goal in GOALS]


def absent(document: Document, goal: Goal) -> str:
    """Why the run has no figure for a goal."""
    process = document["process"]
    for told in ("not_run", "errors"):
        if goal.part in process.get(told, {}):
            return str(process[told][goal.part])
    if goal.part in process.get("cut", ()):
        return "the time of the run was used up"
    return NO_FIGURE


def judged(goal: Goal, found: Found | None, why_not: str = "") -> Verdict:
    """Reached when the figure is at most the limit; "within noise" when only its interval or the A/A noise reaches the limit."""
    if found is None:
        return Verdict(goal.what, goal.text, "", "", "", "not measured", why_not)
    edge = found.low if found.low is not None else found.value
    if found.floor is not None:
        edge = min(edge, found.value - abs(found.value) * found.floor)
    if found.value <= goal.limit:
        verdict = "reached"
    elif edge <= goal.limit:
        verdict = "within noise"
    else:
        verdict = "missed"
    interval = (
        f"{number(found.low)} to {number(found.high)}"
        if found.low is not None and found.high is not None
        else ""
    )
    floor = f"{found.floor:.1%}" if found.floor is not None else "exact" if not interval else ""
    return Verdict(
        goal.what,
        goal.text,
        f"{number(found.value)} {found.unit}".strip(),
        interval,
        floor,
        verdict,
        found.note,
    )


def number(value: float | None) -> str:
    """Three digits that mean something."""
    if value is None:
        return ""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return (
        f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
        if 1e-4 < abs(value) < 1e6
        else f"{value:.2g}"
    )


# --- reading a run -------------------------------------------------------------------------------------------------------------
def row(document: Document, name: str) -> Row:
    """The workload of that name; an empty row when the run has none."""
    return next((one for one in document["workloads"] if one["name"] == name), {})


def get(value: Any, *keys: str) -> Any:
    """The value below these keys, or None."""
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def models(document: Document) -> list[Row]:
    return [one for one in document["workloads"] if one["suite"] == "models"]


def overhead(one: Row, over: str, calls: int = 1) -> tuple[float, float, float] | None:
    """Microseconds per call more than `over` ("eager", "bare", "peer" is the whole of the peer's): value, low, high."""
    ratio = get(one, "warm", over)
    if ratio is None or "a" not in ratio:
        return None
    scale = ratio["a"] * 1e6 / calls
    return tuple((ratio[name] - 1) * scale for name in ("value", "low", "high"))  # type: ignore[return-value]


def calls_of(one: Row) -> int:
    return get(one, "warm", "calls") or 1


def stages_text(one: Row) -> str:
    """Where the time of a cold compile goes, largest part first."""
    stages = get(one, "cold", "stages") or {}
    whole = sum(stages.values()) or 1.0
    largest = sorted(stages.items(), key=lambda item: -item[1])[:4]
    return ", ".join(f"{name} {value / whole:.0%}" for name, value in largest if value / whole >= 0.01)


def worst(rows: Iterable[Row], figure: Callable[[Row], Found | None]) -> Found | None:
    """The largest of a figure over workloads; the note says of which, and all others."""
    found = [(one["name"], made) for one in rows if (made := figure(one)) is not None]
    if not found:
        return None
    found.sort(key=lambda item: -item[1].value)
    name, most = found[0]
    others = ", ".join(f"{other} {number(made.value)}" for other, made in found[1:])
    note = f"{name}: {most.note}" if most.note else name
    return Found(
        most.value, most.low, most.high, most.unit, most.floor, f"{note}; {others}" if others else note
    )


# --- the figures ---------------------------------------------------------------------------------------------------------------
def over_bare_us(document: Document) -> Found | None:
    one = row(document, "x plus 1")
    found = overhead(one, "bare")
    if found is None:
        return None
    check = get(one, "guards", "ns")
    note = f"the call {get(one, 'warm', 'bare', 'b') * 1e6:.2f} µs" + (
        f", its guard check {check / 1e3:.2f} µs" if check is not None else ""
    )
    # The floor is relative to the call; as an absolute time it is that share of the whole call.
    absolute = get(one, "warm", "floor") * get(one, "warm", "bare", "b") * 1e6
    low, high = min(found[1], found[0] - absolute), max(found[2], found[0] + absolute)
    return Found(found[0], low, high, "µs", get(one, "warm", "floor"), note)


def over_bare_of_peers(document: Document) -> Found | None:
    """Our overhead over the bare graph as a share of the peer's."""
    one = row(document, "x plus 1")
    ours, peer, bare = overhead(one, "bare"), get(one, "warm", "peer"), get(one, "warm", "bare")
    if ours is None or peer is None or "a" not in peer:
        return None
    theirs = (peer["a"] - bare["a"]) * 1e6
    values = [value / theirs for value in ours]
    return Found(*values, floor=get(one, "warm", "floor"), note=f"the peer's is {theirs:.2f} µs")


def warm_models(document: Document) -> Found | None:
    def figure(one: Row) -> Found | None:
        ratio = get(one, "warm", "bare")
        return ratio and Found(ratio["value"], ratio["low"], ratio["high"], "", get(one, "warm", "floor"))

    return worst(models(document), figure)


def guard_check(document: Document) -> Found | None:
    one = row(document, "100 linear layers")
    ratio = get(one, "guards", "over_peer")
    if ratio is None:
        return None
    guards = one["guards"]
    note = (
        f"{guards['ns'] / 1e3:.2f} µs for {guards['rows']} guards, the peer {guards['peer_ns'] / 1e3:.2f} µs"
    )
    return Found(ratio["value"], ratio["low"], ratio["high"], "", get(one, "warm", "floor"), note)


def per_module(document: Document) -> Found | None:
    """Nanoseconds of the check per module over those allowed: 2 ns and 6.5 ns per parameter."""
    found = []
    for kind, parameters in (("linear layers", 2), ("activations", 0)):
        many, few = row(document, f"1000 {kind}"), row(document, f"100 {kind}")
        if get(many, "guards", "ns") is None or get(few, "guards", "ns") is None:
            continue
        ns = (many["guards"]["ns"] - few["guards"]["ns"]) / 900
        allowed = 2 + 6.5 * parameters
        found.append((ns / allowed, f"{kind}: {ns:.1f} ns of {allowed:g} ns"))
    if not found:
        return None
    return Found(max(found)[0], note="; ".join(text for _, text in found), floor=noise(document))


def rotating(document: Document) -> Found | None:
    one = row(document, "rotating through 8 entries")
    eager, peer = get(one, "warm", "eager"), get(one, "warm", "peer")
    if eager is None or peer is None or "a" not in eager:
        return None
    calls = calls_of(one)
    ours, theirs = overhead(one, "eager", calls), (peer["a"] - eager["a"]) * 1e6 / calls
    assert ours is not None
    note = f"{ours[0]:.2f} µs a call, the peer {theirs:.2f} µs"
    return Found(*(value / theirs for value in ours), floor=get(one, "warm", "floor"), note=note)


def one_break(document: Document) -> Found | None:
    """Microseconds per break: the slope between programs with few and many breaks."""
    found = break_slope(document)
    return None if found is None else found[0]


def one_break_of_peers(document: Document) -> Found | None:
    """The same over the peer's."""
    found = break_slope(document)
    if found is None or found[1] is None:
        return None
    ours, theirs = found
    assert ours.low is not None and ours.high is not None
    return Found(ours.value / theirs, ours.low / theirs, ours.high / theirs, floor=ours.floor)


def break_slope(document: Document) -> tuple[Found, float | None] | None:
    """Our microseconds per break, and the peer's."""
    counts = [n for n in (1, 5, 20) if overhead(row(document, breaks_name(n)), "eager") is not None]
    if len(counts) < 2:
        return None
    few, many = counts[0], counts[-1]
    low, high = row(document, breaks_name(few)), row(document, breaks_name(many))
    a, b = overhead(low, "eager"), overhead(high, "eager")
    assert a is not None and b is not None
    span = many - few
    reach = math.hypot(a[2] - a[1], b[2] - b[1]) / 2 / span
    value = (b[0] - a[0]) / span
    peers = [
        (get(one, "warm", "peer", "a") - get(one, "warm", "eager", "a")) * 1e6
        for one in (low, high)
        if get(one, "warm", "peer", "a") is not None
    ]
    peer = (peers[1] - peers[0]) / span if len(peers) == 2 else None
    note = f"between {few} and {many} breaks" + ("" if peer is None else f"; the peer {peer:.2f} µs")
    return Found(value, value - reach, value + reach, "µs", get(high, "warm", "floor"), note), peer


def breaks_name(count: int) -> str:
    return f"{count} graph break{'s' * (count > 1)}"


def skipped_frames(document: Document) -> Found | None:
    def figure(one: Row) -> Found | None:
        ratio = get(one, "warm", "eager")
        return ratio and Found(ratio["value"], ratio["low"], ratio["high"], "", get(one, "warm", "floor"))

    rows = [
        one for one in document["workloads"] if one["suite"] == "python" and "in a compiled" in one["name"]
    ]
    return worst(rows, figure)


def outside(document: Document) -> Found | None:
    found = get(document, "process", "neutrality")
    if found is None:
        return None
    note = "a process where the hook was live and is restored, over one that never had it"
    return Found(found["value"], found["low"], found["high"], "", found["floor"], note)


def cold_ratio(one: Row, note: str) -> Found | None:
    """The cold compile over the peer's; the interval is the range of its rounds."""
    value = get(one, "cold", "over_peer")
    if value is None:
        return None
    return Found(value, get(one, "cold", "over_low"), get(one, "cold", "over_high"), note=note)


def peer_ms(one: Row) -> str:
    ms = get(one, "cold", "peer_ms")
    return "" if ms is None else f"the peer {ms:.1f} ms"


def cold_models(document: Document) -> Found | None:
    return worst(models(document), lambda one: cold_ratio(one, stages_text(one)))


def cold_one(document: Document) -> Found | None:
    one = row(document, "x plus 1")
    value = get(one, "cold", "ms")
    if value is None:
        return None
    theirs = get(one, "cold", "peer_ms")
    note = stages_text(one)
    if theirs:  # the goal was set where the peer took 30 ms
        note = f"{value * 30 / theirs:.2f} ms on a machine where the peer takes 30 ms; {note}"
    return Found(value, get(one, "cold", "low"), get(one, "cold", "high"), "ms", note=note)


def cold_one_of_peers(document: Document) -> Found | None:
    one = row(document, "x plus 1")
    return cold_ratio(one, peer_ms(one))


def cold_one_without_profiler(document: Document) -> Found | None:
    one = row(document, "one operator, peer without its guard profiler")
    return cold_ratio(one, peer_ms(one))


def per_step(family: str, each: int, what: str) -> Callable[[Document], Found | None]:
    """Cost of one more operator or bytecode over the peer's: slopes between two sizes."""

    def find(document: Document) -> Found | None:
        rows = [
            one for one in document["workloads"] if one["family"] == family and get(one, "cold", "peer_ms")
        ]
        if len(rows) < 2:
            return None
        rows.sort(key=lambda one: one["size"])
        few, many = rows[0], rows[-1]
        steps = (many["size"] - few["size"]) * each
        ours = (many["cold"]["ms"] - few["cold"]["ms"]) * 1e3 / steps
        theirs = (many["cold"]["peer_ms"] - few["cold"]["peer_ms"]) * 1e3 / steps
        reach = (many["cold"]["high"] - many["cold"]["low"]) * 1e3 / steps / theirs
        note = f"{ours:.2f} µs {what}, the peer {theirs:.2f} µs; {stages_text(many)}"
        return Found(ours / theirs, ours / theirs - reach, ours / theirs + reach, note=note)

    return find


def recompile(document: Document) -> Found | None:
    def figure(one: Row) -> Found | None:
        found = get(one, "recompiles", "over_first")
        if found is None:
            return None
        all_of = one["recompiles"]
        again = all_of["ms"]["1"]
        note = f"{number(again)} ms after {number(all_of['first_ms'])} ms"
        if all_of.get("peer_first_ms"):
            note += f", 1/{all_of['peer_first_ms'] / again:.0f} of the peer's first, 1/{all_of['peer_ms']['1'] / again:.0f} of its second"
        return Found(found["value"], found["low"], found["high"], note=note)

    return worst(document["workloads"], figure)


def jit(document: Document) -> Found | None:
    found = get(document, "process", "jit")
    return found and Found(found["value"], found["low"], found["high"])


def growth(document: Document) -> Found | None:
    curves = [curve for curve in document["scaling"] if "ms_exponent" in curve or "calls_exponent" in curve]
    if not curves:
        return None
    found = []
    for curve in curves:
        exponents = [curve[name] for name in ("calls_exponent", "ms_exponent") if name in curve]
        texts = " and ".join(f"{value:.2f}" for value in exponents)
        found.append((max(exponents), f"{curve['family']} {texts} up to {curve['sizes'][-1]}"))
    return Found(max(found)[0], note="; ".join(text for _, text in found) + " (calls and time)")


def start(step: str) -> Callable[[Document], Found | None]:
    def find(document: Document) -> Found | None:
        times = get(document, "process", "start") or {}
        if step not in times:
            return None
        note = f"importing torch {times['import torch']:.2f} s"
        return Found(times[step], unit="s of CPU", floor=None, note=note)

    return find


def memory(unit: str) -> Callable[[Document], Found | None]:
    """The larger of a first and a further entry of a frame with one operator."""

    def find(document: Document) -> Found | None:
        found = get(document, "process", "memory", "minidynamo")
        if found is None:
            return None
        first, further = found[f"{unit} a frame"], found[f"{unit} a further entry"]
        peer = get(document, "process", "memory", "torch.compile") or {}
        note = f"further entries {number(further)}"
        note += (
            f"; the peer {number(peer[f'{unit} a frame'])} and {number(peer[f'{unit} a further entry'])}"
            if peer
            else ""
        )
        note += "; " + ", ".join(f"{name} {share:.0%}" for name, share in list(found["parts"].items())[:4])
        return Found(max(first, further), unit=unit, note=note)

    return find


def leaks(document: Document) -> Found | None:
    found = get(document, "process", "leak", "minidynamo")
    if found is None:
        return None
    peer = get(document, "process", "leak", "torch.compile")
    note = f"{found['rounds']} rounds" + (f"; the peer {peer['objects']}" if peer else "")
    return Found(found["objects"], unit="objects", note=note)


def second_instance(document: Document) -> Found | None:
    one = row(document, "second instance of a module")
    recompiles = get(one, "counters", "recompiles")
    return None if recompiles is None else Found(recompiles, unit="recompilations")


def noise(document: Document) -> float:
    """The largest A/A deviation of the run."""
    return max((one["warm"]["floor"] for one in document["workloads"] if "warm" in one), default=0.0)


GOALS = (
    Goal("warm call, one operator, over the bare graph", 0.25, "at most 0.25 µs", over_bare_us),
    Goal("the same over the peer's overhead", 1 / 30, "at most 1/30 (0.0333)", over_bare_of_peers),
    Goal("warm call of every model over the bare graph", 1.05, "at most 1.05", warm_models),
    Goal("guard check of 100 linear layers over the peer's", 1 / 12, "at most 1/12 (0.0833)", guard_check),
    Goal("guard check per module at 1,000 over 2 ns + 6.5 ns a parameter", 1.0, "at most 1", per_module),
    Goal("rotating through 8 entries: overhead over the peer's", 1 / 20, "at most 1/20 (0.05)", rotating),
    Goal("a graph break, warm", 0.5, "at most 0.5 µs", one_break),
    Goal("a graph break, warm, over the peer's", 0.5 / 5.8, "at most 1/11.6 (0.0862)", one_break_of_peers),
    Goal("Python frames skipped inside a compiled region over plain", 1.05, "at most 1.05", skipped_frames),
    Goal("plain Python outside of compiled calls", 1.0, "1.00", outside, "neutrality"),
    Goal("cold compile of every model over the peer's", 1 / 8, "at most 1/8 (0.125)", cold_models),
    Goal("cold compile, x + 1", 1.5, "at most 1.5 ms", cold_one),
    Goal("the same over the peer's", 1 / 20, "at most 1/20 (0.05)", cold_one_of_peers),
    Goal("the same over the peer's without its guard profiler", 1 / 7, "at most 1/7 (0.143)", cold_one_without_profiler),
    Goal("cold compile per operator of a straight line over the peer's", 1 / 8, "at most 1/8 (0.125)",
         per_step("operators", 1, "an operator")),
    Goal("cold compile per pure-Python bytecode over the peer's", 1 / 8, "at most 1/8 (0.125)",
         per_step("unrolled iterations", 9, "a bytecode")),
    Goal("a recompilation over the first compilation", 0.5, "at most 0.5", recompile),
    Goal("x + 1, whole call, over jax.jit(x + 1)", 1.0, "below 1", jit, "jit"),
    Goal("exponent of the growth of compile time", 1.05, "at most 1.05", growth),
    Goal("import minidynamo over import torch", 0.1, "at most 0.1 s", start("import minidynamo"), "start"),
    Goal("first compile of a process over the import", 0.15, "at most 0.15 s more", start("first compile"), "start"),
    Goal("memory of an entry with one operator", 15.0, "at most 15 KiB", memory("KiB"), "memory"),
    Goal("collectable objects of such an entry", 80.0, "at most 80", memory("objects"), "memory"),
    Goal("objects left by 200 rounds of compile and reset", 0.0, "0", leaks, "leak"),
    Goal("a second instance of a module class", 0.0, "reuses the entry: 0 recompilations", second_instance),
)  # fmt: skip
