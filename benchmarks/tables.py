"""A run as tables of text. One list of tables, rendered by rich, as Markdown, and as tab-separated lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .goals import NO_FIGURE, get, noise, number

Row = dict[str, Any]
Document = dict[str, Any]
SHARES = ("translate", "meta", "guards", "backend")  # of the cold compile, shown in the table
COLUMNS = (
    "workload", "vs eager", "vs torch.compile", "vs bare graph", "A/A", "cold ms (translate/meta/guards/backend)",
    "vs torch cold", "calls", "graphs", "ops in graphs", "breaks", "recomp", "skipped", "guards", "accuracy",
)  # fmt: skip

NARROW = ("workload", "vs eager", "vs torch.compile", COLUMNS[5], "calls", "breaks", "recomp")
NARROW_WIDTH = 150  # terminals below show these columns of suites only
WORDS = {"error": "FAILED", "not_run": "NOT RUN", "cut": "no time left"}


@dataclass(frozen=True, slots=True)
class Table:
    """key: the first word of its lines for a pipe; the first column names the row, empty columns are left out."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: list[list[str]]

    def shown(self) -> list[int]:
        """The columns that say anything."""
        return [i for i in range(len(self.columns)) if i == 0 or any(row[i] for row in self.rows)]


# --- workloads -----------------------------------------------------------------------------------------------------------------
def ratio(found: Row | None) -> str:
    """A ratio with half of its 95 % interval and the number of pairs."""
    if found is None:
        return ""
    half = (found["high"] - found["low"]) / 2
    return f"{found['value']:.3f} ±{half:.3f} ({found['pairs']})"


def _cold(row: Row) -> tuple[str, str]:
    cold = row.get("cold")
    if cold is None:
        return "", ""
    stages = cold.get("stages", {})
    whole = sum(stages.values()) or 1.0
    split = "/".join(f"{stages.get(name, 0) / whole:.0%}" for name in SHARES)
    time = f"{cold['ms']:.2f} ({split})" if "ms" in cold else ""
    return time, f"1/{1 / cold['over_peer']:.1f}" if "over_peer" in cold else ""


def _count(row: Row, name: str) -> str:
    """Our count, and the peer's where it differs."""
    own, theirs = get(row, "counters", name), get(row, "peer_counters", name)
    if own is None:
        return ""
    return f"{own} (torch {theirs})" if theirs is not None and theirs != own else str(own)


def cells(row: Row) -> list[str]:
    """One workload as text, in the order of COLUMNS."""
    counters, covered, accuracy = row.get("counters", {}), row.get("coverage"), row.get("accuracy")
    said = next((word for key, word in WORDS.items() if key in row), "")
    return [
        row["name"],
        said if "error" in row else ratio(get(row, "warm", "eager")) or said,
        ratio(get(row, "warm", "peer")),
        ratio(get(row, "warm", "bare")),
        f"{row['warm']['floor']:.1%}" if "warm" in row else "",
        *_cold(row),
        str(row.get("calls", "")),
        _count(row, "graphs"),
        f"{covered['captured']}/{covered['total']}" if covered else "",
        *(str(counters.get(name, "")) for name in ("breaks", "recompiles", "skipped", "guards")),
        "" if not accuracy else "ok" if accuracy["ok"] else f"ERROR {accuracy['error']:.1e}",
    ]


def workloads(document: Document) -> Iterator[Table]:
    """One table per suite."""
    for suite in dict.fromkeys(row["suite"] for row in document["workloads"]):
        rows = [cells(row) for row in document["workloads"] if row["suite"] == suite]
        yield Table(suite, f"suite {suite}", COLUMNS, rows)


# --- further figures -----------------------------------------------------------------------------------------------------------
def misses(document: Document) -> Iterator[Table]:
    rows = []
    for row in document["workloads"]:
        found, limit = row.get("recompiles"), row.get("after_limit", {})
        if found is None:
            continue
        kth = found["ms"]
        rows.append(
            [
                row["name"],
                number(found["first_ms"]),
                *(number(kth.get(k)) for k in ("1", "2", "4", "8")),
                number(found["told_ms"]["1"]),
                number(found["miss_us"]["1"]),
                f"{number(found['peer_first_ms'])}, {number(found['peer_ms']['1'])}"
                if "peer_ms" in found
                else "",
                number(get(limit, "ours", "us")),
                number(get(limit, "peer", "us")),
            ]
        )
    if rows:
        columns = (
            "workload", "first ms", "1st recompile", "2nd", "4th", "8th", "1st, reasons told", "miss alone µs",
            "torch: first, 1st ms", "call after the limit, µs over eager", "torch: the same",
        )  # fmt: skip
        yield Table("recompiles", "no entry fits: recompilations and calls after the limit", columns, rows)


def checks(document: Document) -> Iterator[Table]:
    rows = []
    for row in document["workloads"]:
        found = row.get("guards")
        if found is None:
            continue
        peer = number(found["peer_ns"]) if "peer_ns" in found else ""
        each = number(found["ns"] / found["rows"]) if found["rows"] else ""
        rows.append(
            [row["name"], str(found["rows"]), number(found["ns"]), each, peer, ratio(found.get("over_peer"))]
        )
    if rows:
        columns = ("workload", "guards", "check ns", "ns a guard", "torch check ns", "over torch's")
        yield Table("checks", "warm guard checks, called alone", columns, rows)


def kinds(document: Document) -> Iterator[Table]:
    rows = [
        [
            one["kind"],
            number(one["value"]),
            f"{number(one['low'])} to {number(one['high'])}",
            str(one["count"]),
            one["program"],
        ]
        for one in document["process"].get("kinds", ())
    ]
    if rows:
        columns = ("kind of guard", "ns each", "95 % interval", "guards of it", "in the program")
        yield Table("kinds", "what one guard of a kind adds to a warm check", columns, rows)


def scaling(document: Document) -> Iterator[Table]:
    rows = []
    for curve in document["scaling"]:
        exponents = [f"{curve[key]:.2f}" if key in curve else "" for key in ("calls_exponent", "ms_exponent")]
        if any(exponents):
            rows.append([curve["family"], f"{curve['sizes'][0]} to {curve['sizes'][-1]}", *exponents])
    if rows:
        columns = ("cold compile over", "sizes", "exponent of calls", "exponent of time")
        yield Table("growth", "growth of compile work", columns, rows)


def process(document: Document) -> Iterator[Table]:
    """Memory, leaks, neutrality, start."""
    found = document["process"]
    sides = list(found.get("memory", {})) or list(found.get("leak", {}))
    rows = []
    for name in next(iter(found.get("memory", {}).values()), {}):
        if name != "parts":
            rows.append([name, *(number(found["memory"][side][name]) for side in sides)])
    if "leak" in found:
        for name in ("objects", "bytes"):
            rounds = found["leak"][sides[0]]["rounds"]
            rows.append(
                [
                    f"{name} left by {rounds} rounds of compile and reset",
                    *(str(found["leak"][s][name]) for s in sides),
                ]
            )
    if rows:
        yield Table("memory", "memory of a frame with one operator", ("what", *sides), rows)
    if "start" in found:
        rows = [[name, f"{value:.3f}"] for name, value in found["start"].items()]
        yield Table("start", "CPU seconds that each step adds to a process", ("step", "s"), rows)
    if "neutrality" in found:
        rows = [
            [
                "pure Python after the hook was restored",
                ratio(found["neutrality"]),
                f"{found['neutrality']['floor']:.1%}",
            ]
        ]
        yield Table(
            "neutrality",
            "a process where the hook was, over one that never had it",
            ("what", "ratio", "A/A"),
            rows,
        )


def missing(document: Document) -> Iterator[Table]:
    """Why figures are not there."""
    found = document["process"]
    problems = [[name, f"FAILED: {text}"] for name, text in found.get("errors", {}).items()]
    problems += [[name, f"NOT RUN: {text}"] for name, text in found.get("not_run", {}).items()]
    problems += [[name, "no time left"] for name in found.get("cut", ())]
    for row in document["workloads"]:
        texts = [f"FAILED: {row['error']}"] if "error" in row else []
        texts += [f"NOT RUN: {row['not_run']}"] if "not_run" in row else []
        texts += [f"no time left for {', '.join(row['cut'])}"] if "cut" in row else []
        problems += [[row["name"], "; ".join(texts)]] if texts else []
    if problems:
        yield Table("missing", "not measured", ("figure", "why"), problems)


GOALS = ("what", "goal", "measured", "interval", "A/A", "verdict", "taken from; what it is made of")


def goal_table(document: Document) -> Iterator[Table]:
    keys = ("what", "goal", "measured", "interval", "floor", "verdict", "note")
    rows = [[row[key] for key in keys] for row in document["goals"] if row["note"] != NO_FIGURE]
    if rows:
        yield Table("goal", "goals", GOALS, rows)


PARTS = (workloads, misses, checks, kinds, scaling, process, missing, goal_table)


def tables(document: Document) -> list[Table]:
    """Every table that the run has figures for."""
    return [table for part in PARTS for table in part(document)]


def heading(document: Document) -> str:
    """Where the run was made, and how to read it."""
    machine = document["machine"]
    facts = [f"python {machine['python']}", f"torch {machine['torch']}"]
    facts += [f"{machine['cores']} cores"] if "cores" in machine else []
    facts += [f"load {machine['load']:.1f}"] if "load" in machine else []
    facts += [f"revision {document['revision']}"] if document["revision"] else []
    used = document["budget"]["used"]
    facts += [f"{used:.0f} of {document['budget']['seconds']:.0f} s used"] if used else []
    return f"{', '.join(facts)}; A/A noise up to {noise(document):.1%}; ratios are below 1 where minidynamo is faster"


# --- renderers -----------------------------------------------------------------------------------------------------------------
def markdown_table(table: Table) -> str:
    kept = table.shown()
    lines = ["| " + " | ".join(table.columns[i] for i in kept) + " |", "|" + "---|" * len(kept)]
    lines += ["| " + " | ".join(row[i].replace("|", "\\|") for i in kept) + " |" for row in table.rows]
    return "\n".join(lines) + "\n"


def markdown(document: Document) -> str:
    parts = [heading(document) + "\n"]
    parts += [f"## {table.title}\n\n{markdown_table(table)}" for table in tables(document)]
    return "\n".join(parts)


def plain(document: Document) -> str:
    """One greppable line per row, for a pipe."""
    lines = [f"# {heading(document)}"]
    for table in tables(document):
        kept = table.shown()[1:]
        for row in table.rows:
            lines.append(
                "\t".join([table.key, row[0], *(f"{table.columns[i]}={row[i]}" for i in kept if row[i])])
            )
    return "\n".join(lines)


def print_rich(document: Document) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console()
    for table in tables(document):
        made = RichTable(title=table.title, title_justify="left", show_lines=table.key == "goal")
        kept = table.shown()
        if table.columns is COLUMNS and console.width < NARROW_WIDTH:
            kept = [i for i in kept if COLUMNS[i] in NARROW]
        words = ("goal", "kinds", "missing")
        for i in kept:
            right = i > 0 and table.key not in words
            made.add_column(table.columns[i], justify="right" if right else "left", overflow="fold")
        for row in table.rows:
            made.add_row(*(Text(row[i], style=style(row[i])) for i in kept))
        console.print(made)
    console.print(heading(document), highlight=False)


def style(text: str) -> str:
    """Colour of what is good or bad at a glance."""
    if text.startswith(("FAILED", "ERROR", "missed")):
        return "red"
    if text.startswith(("NOT RUN", "no time", "not measured", "within noise")):
        return "yellow"
    return "green" if text == "reached" else ""
