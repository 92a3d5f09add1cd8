"""Three pictures of a run, as SVG and PNG: speed, cold-compile split, scaling curves. Needs matplotlib (extra `bench`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .goals import get

INK, GRID = "#333333", "#dddddd"
LABELS = {"eager": "eager", "peer": "torch.compile", "bare": "the bare graph"}
COLORS = {"eager": "#4269d0", "peer": "#efb118", "bare": "#3ca951"}
MARKS = {"eager": "o", "peer": "s", "bare": "D"}
STAGES = {
    "lift": "#9c6b4e", "translate": "#4269d0", "meta": "#97bbf5", "backend": "#efb118", "emit": "#ff725c",
    "assemble": "#ff8ab7", "guards": "#3ca951", "install": "#a463f2",
}  # fmt: skip
CURVES = ("#4269d0", "#efb118", "#3ca951", "#ff725c", "#a463f2", "#9c6b4e")
TITLES = {
    "speed": "warm call: minidynamo's time over that of others",
    "cold": "cold compile by stage",
    "scaling": "growth of compile work",
}
ROW = 0.3  # inches of height per workload


class NoPlots(Exception):
    """matplotlib is missing."""


def draw(document: dict[str, Any], folder: Path) -> list[Path]:
    """Writes speed, cold and scaling (those that have data) to `folder`; returns the files. Raises NoPlots."""
    try:
        import matplotlib
    except ImportError as error:
        raise NoPlots("plots need matplotlib: pip install 'minidynamo[bench]'") from error
    matplotlib.use("Agg")
    matplotlib.rcParams |= {
        "svg.hashsalt": "minidynamo", "svg.fonttype": "none", "font.size": 10, "axes.edgecolor": INK,
        "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "axes.titlelocation": "left",
    }  # fmt: skip
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, make in (("speed", _speed), ("cold", _cold), ("scaling", _scaling)):
        figure = make(plt, document)
        if figure is None:
            continue
        for ending, metadata in (("svg", {"Date": None}), ("png", {})):
            path = folder / f"{name}.{ending}"
            figure.savefig(path, dpi=110, bbox_inches="tight", metadata=metadata)
            written.append(path)
        plt.close(figure)
    return written


def _places(rows: list[dict[str, Any]]) -> tuple[list[float], list[tuple[float, str]]]:
    """A height per row, a gap between suites; and where each suite begins, with its name."""
    places: list[float] = []
    starts: list[tuple[float, str]] = []
    at = 0.0
    for index, row in enumerate(rows):
        if not index or row["suite"] != rows[index - 1]["suite"]:
            at += 1.0 if index else 0.0
            starts.append((at - 0.75, row["suite"]))
        places.append(at)
        at += 1
    return places, starts


def _frame(plt: Any, rows: list[dict[str, Any]]) -> tuple[Any, Any, list[float]]:
    """A figure with one line per row, named on the left, suites apart."""
    places, starts = _places(rows)
    height = ROW * (places[-1] + 1.5) + 1.4
    figure, axes = plt.subplots(figsize=(9.5, height))
    axes.set_yticks(places, [row["name"] for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(places[-1] + 0.7, -1.2)
    for place, suite in starts:
        axes.annotate(
            suite, (0, place), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points",
            fontsize=8, color="#777777", va="center", style="italic",
        )  # fmt: skip
    axes.grid(axis="x", color=GRID)
    return figure, axes, places


def _legend(axes: Any, columns: int) -> None:
    """Above the plot, below its title."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, frameon=False, borderaxespad=0.1, handletextpad=0.4,
        columnspacing=1.2,
    )  # fmt: skip


def _speed(plt: Any, document: dict[str, Any]) -> Any:
    rows = [row for row in document["workloads"] if get(row, "warm", "eager") is not None]
    if not rows:
        return None
    figure, axes, places = _frame(plt, rows)
    values = []
    for name, label in LABELS.items():
        for place, row in zip(places, rows, strict=True):
            found = get(row, "warm", name)
            if found is None:
                continue
            values += [found["low"], found["high"]]
            axes.plot([found["low"], found["high"]], [place, place], color=COLORS[name], lw=1.5, zorder=2)
            axes.plot(
                found["value"], place, MARKS[name], color=COLORS[name], ms=6, mec="white", mew=0.6, zorder=3
            )
        if any(get(row, "warm", name) for row in rows):
            axes.plot([], [], MARKS[name], color=COLORS[name], ms=6, label=f"over {label}")
    for place in places:
        axes.axhline(place, color="#eeeeee", lw=0.8, zorder=0)
    axes.axvline(1.0, color=INK, lw=1.2, zorder=1)
    axes.set_xscale("log")
    low, high = min([*values, 0.5]) / 1.1, max([*values, 1.5]) * 1.1
    ticks = [
        tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20) if low <= tick <= high
    ]
    axes.set_xlim(low, high)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("time ratio, lines are 95 % intervals; left of 1 minidynamo is faster")
    axes.set_title(TITLES["speed"], pad=24)
    _legend(axes, 3)
    return figure


def _cold(plt: Any, document: dict[str, Any]) -> Any:
    rows = [row for row in document["workloads"] if get(row, "cold", "stages") and row["suite"] != "scaling"]
    if not rows:
        return None
    figure, axes, places = _frame(plt, rows)
    for place, row in zip(places, rows, strict=True):
        stages, ms = row["cold"]["stages"], row["cold"]["ms"]
        scale = 100 / (sum(stages.values()) or 1.0)
        left = 0.0
        for name, color in STAGES.items():
            width = stages.get(name, 0.0) * scale
            axes.barh(place, width, 0.72, left=left, color=color)
            if width > 9:
                axes.text(
                    left + width / 2,
                    place,
                    f"{width:.0f}",
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="white",
                )
            left += width
        peer = f", 1/{1 / row['cold']['over_peer']:.1f} of torch" if "over_peer" in row["cold"] else ""
        axes.text(101, place, f"{ms:.1f} ms{peer}", va="center", fontsize=8.5, color=INK)
    for name, color in STAGES.items():
        axes.plot([], [], "s", color=color, ms=8, label=name)
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the CPU time of the stages; on the right the whole first call")
    axes.set_title(TITLES["cold"], pad=24)
    _legend(axes, len(STAGES))
    return figure


def _scaling(plt: Any, document: dict[str, Any]) -> Any:
    """Calls (exact) and time, each in its panel; the fitted exponent in the legend."""
    panels = [
        ("calls", "Python and C calls per compile (exact)"),
        ("ms", "milliseconds of CPU per compile"),
    ]
    panels = [(key, title) for key, title in panels if any(key in curve for curve in document["scaling"])]
    if not panels:
        return None
    figure, all_axes = plt.subplots(1, len(panels), figsize=(5.6 * len(panels), 4.6), squeeze=False)
    for axes, (key, title) in zip(all_axes[0], panels, strict=True):
        curves = [curve for curve in document["scaling"] if key in curve]
        for index, curve in enumerate(curves):
            label = f"{curve['family']}: exponent {curve[f'{key}_exponent']:.2f}"
            axes.plot(
                curve["sizes"],
                curve[key],
                marker="osD^vP"[index % 6],
                ms=5,
                lw=1.6,
                color=CURVES[index % 6],
                label=label,
            )
        sizes = sorted({size for curve in curves for size in curve["sizes"]})
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("size (operators, iterations, guards, modules, calls)")
        axes.set_title(title, fontsize=10)
        axes.grid(color=GRID)
        axes.legend(frameon=False, fontsize=8.5, loc="upper left")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * 8)  # room for the legend
    figure.suptitle(TITLES["scaling"], x=0.01, ha="left")
    figure.tight_layout()
    return figure
