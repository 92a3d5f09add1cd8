"""A run as tables: rich on a terminal, Markdown in a file. Both are made from the same rows of text."""

from __future__ import annotations

from typing import Any

COLUMNS = (
    "workload", "vs eager", "vs torch.compile", "vs bare graph", "cold ms", "vs torch cold", "translate/backend/emit/guards", "calls",
    "graphs", "breaks", "recomp", "guards", "accuracy",
)  # fmt: skip
SHARES = ("translate", "backend", "emit", "guards")


def _ratio(row: dict[str, Any], name: str) -> str:
    found = row.get("warm", {}).get(name)
    if found is None:
        return ""
    half = (found["high"] - found["low"]) / 2
    return f"{found['value']:.3f} ±{half:.3f} ({found['pairs']})"


def _cold(row: dict[str, Any]) -> tuple[str, str, str]:
    cold = row.get("cold")
    if cold is None:
        return "", "", ""
    stages = cold.get("stages", {})
    whole = sum(stages.values()) or 1.0
    split = "/".join(f"{stages.get(name, 0) / whole:.0%}" for name in SHARES) if stages else ""
    over = f"1/{1 / cold['over_peer']:.1f}" if "over_peer" in cold else ""
    return f"{cold['ms']:.2f}" if "ms" in cold else "", over, split


def _peer(row: dict[str, Any], name: str) -> str:
    """Our count, and the peer's where it differs."""
    own = row.get("counters", {}).get(name)
    theirs = row.get("warm", {}).get("peer_graphs", {}).get(name)
    if own is None:
        return ""
    return f"{own} (torch {theirs})" if theirs is not None and theirs != own else str(own)


def cells(row: dict[str, Any]) -> list[str]:
    """One workload as text, in the order of COLUMNS."""
    if "error" in row or "not_run" in row:
        said = f"FAILED {row['error']}" if "error" in row else f"NOT RUN: {row['not_run']}"
        return [row["name"], said, *[""] * (len(COLUMNS) - 2)]
    counters = row.get("counters", {})
    accuracy = row.get("accuracy")
    return [
        row["name"],
        _ratio(row, "eager"),
        _ratio(row, "peer"),
        _ratio(row, "bare"),
        *_cold(row),
        str(row.get("calls", "")),
        _peer(row, "graphs"),
        *(str(counters.get(name, "")) for name in ("breaks", "recompiles", "guards")),
        "" if not accuracy else "ok" if accuracy["ok"] else f"ERROR {accuracy['error']:.1e}",
    ]


def noise(document: dict[str, Any]) -> float:
    """The largest A/A deviation of the run."""
    return max((row["warm"]["floor"] for row in document["workloads"] if "warm" in row), default=0.0)


def heading(document: dict[str, Any]) -> str:
    machine = document["machine"]
    facts = [f"python {machine['python']}", f"torch {machine['torch']}"]
    facts += [f"{machine[name]} {name}" for name in ("cores",) if name in machine]
    facts += [f"load {machine['load']:.1f}"] if "load" in machine else []
    facts += [f"revision {document['revision']}"] if document["revision"] else []
    return f"{', '.join(facts)}; A/A noise up to {noise(document):.1%}; ratios are below 1 where minidynamo is faster"


def facts(document: dict[str, Any]) -> list[str]:
    """What belongs to no workload: curves, memory, start."""
    lines = []
    for curve in document["scaling"]:
        parts = [
            f"{name} exponent {curve[f'{name}_exponent']:.2f}"
            for name in ("calls", "ms")
            if f"{name}_exponent" in curve
        ]
        if parts:
            lines.append(
                f"compile time over {curve['family']} ({curve['sizes'][0]} to {curve['sizes'][-1]}): {', '.join(parts)}"
            )
    process = document.get("process")
    if process:
        lines.append(
            "memory: " + ", ".join(f"{value:.1f} {name}" for name, value in process["memory"].items())
        )
        lines.append(f"left behind by rounds of compile and reset: {process['leak']} objects")
        lines.append(
            "CPU seconds of a process: "
            + ", ".join(f"{name} {value:.2f}" for name, value in process["start"].items())
        )
    return lines


def shown(document: dict[str, Any]) -> list[int]:
    """The columns that say anything."""
    rows = [cells(row) for row in document["workloads"]]
    return [i for i in range(len(COLUMNS)) if i == 0 or any(row[i] for row in rows)]


def markdown(document: dict[str, Any]) -> str:
    kept = shown(document)
    lines = [
        heading(document),
        "",
        "| " + " | ".join(COLUMNS[i] for i in kept) + " |",
        "|" + "---|" * len(kept),
    ]
    for row in document["workloads"]:
        text = cells(row)
        lines.append("| " + " | ".join(text[i].replace("|", "\\|") for i in kept) + " |")
    lines += ["", *(f"* {line}" for line in facts(document))]
    return "\n".join(lines) + "\n"


def plain(document: dict[str, Any]) -> str:
    """One greppable line per workload, for a pipe."""
    kept = shown(document)
    lines = [f"# {heading(document)}"]
    for row in document["workloads"]:
        text = cells(row)
        lines.append(
            "\t".join([row["suite"], text[0], *(f"{COLUMNS[i]}={text[i]}" for i in kept[1:] if text[i])])
        )
    return "\n".join([*lines, *(f"# {line}" for line in facts(document))])


def print_rich(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    kept = shown(document)
    for suite in dict.fromkeys(row["suite"] for row in document["workloads"]):
        table = Table(title=suite, title_justify="left", show_lines=False)
        for i in kept:
            table.add_column(COLUMNS[i], justify="left" if i == 0 else "right", overflow="fold")
        for row in document["workloads"]:
            if row["suite"] == suite:
                text = cells(row)
                table.add_row(*(text[i] for i in kept))
        console.print(table)
    console.print(heading(document), highlight=False)
    for line in facts(document):
        console.print(line, highlight=False)
