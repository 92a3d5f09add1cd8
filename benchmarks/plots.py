"""Three pictures of a run, as SVG and PNG: speed, cold-compile split, scaling curves. Needs matplotlib (extra `bench`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .tables import SHARES

COLORS = {"eager": "#4269d0", "peer": "#efb118", "bare": "#97bbf5"}
LABELS = {"eager": "time over eager", "peer": "time over torch.compile", "bare": "time over the bare graph"}


class NoPlots(Exception):
    """matplotlib is missing."""


def draw(document: dict[str, Any], folder: Path) -> list[Path]:
    """Writes speed, cold and scaling (those that have data) to `folder`; returns the files. Raises NoPlots."""
    try:
        import matplotlib
    except ImportError as error:
        raise NoPlots("plots need matplotlib: pip install 'minidynamo[bench]'") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, make in (("speed", _speed), ("cold", _cold), ("scaling", _scaling)):
        figure = make(plt, document)
        if figure is None:
            continue
        for ending in ("svg", "png"):
            path = folder / f"{name}.{ending}"
            figure.savefig(path, dpi=110, bbox_inches="tight")
            written.append(path)
        plt.close(figure)
    return written


def _speed(plt: Any, document: dict[str, Any]) -> Any:
    rows = [row for row in document["workloads"] if "eager" in row.get("warm", {})]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.42 * len(rows)))
    names = [name for name in LABELS if any(name in row["warm"] for row in rows)]
    height = 0.8 / len(names)
    for offset, name in enumerate(names):
        places = [i + offset * height for i, row in enumerate(rows) if name in row["warm"]]
        found = [row["warm"][name] for row in rows if name in row["warm"]]
        errors = [[r["value"] - r["low"] for r in found], [r["high"] - r["value"] for r in found]]
        axes.barh(
            places,
            [r["value"] for r in found],
            height,
            xerr=errors,
            color=COLORS[name],
            label=LABELS[name],
            error_kw={"lw": 1},
        )
    axes.set_yticks([i + 0.4 - height / 2 for i in range(len(rows))], [row["name"] for row in rows])
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", lw=1)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    axes.minorticks_off()
    axes.set_title("warm call: left of 1 minidynamo is faster (95 % intervals)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=3, frameon=False)
    return figure


def _cold(plt: Any, document: dict[str, Any]) -> Any:
    rows = [
        row
        for row in document["workloads"]
        if row.get("cold", {}).get("stages") and row["suite"] != "scaling"
    ]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.36 * len(rows)))
    names = [row["name"] for row in rows]
    left = [0.0] * len(rows)
    for stage in (*SHARES, "lift", "assemble"):
        widths = [row["cold"]["stages"].get(stage, 0.0) for row in rows]
        axes.barh(names, widths, left=left, label=stage)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.barh(
        names,
        [max(0.0, row["cold"]["ms"] - spent) for row, spent in zip(rows, left, strict=True)],
        left=left,
        color="#cccccc",
        label="rest",
    )
    for index, row in enumerate(rows):
        if "over_peer" in row["cold"]:
            axes.annotate(
                f" 1/{1 / row['cold']['over_peer']:.0f} of torch.compile",
                (max(left[index], row["cold"]["ms"]), index),
                va="center",
                fontsize=8,
            )
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds of CPU")
    axes.set_xlim(0, 1.25 * max(row["cold"]["ms"] for row in rows))
    axes.set_title("cold compile, by stage")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=7, frameon=False)
    return figure


def _scaling(plt: Any, document: dict[str, Any]) -> Any:
    curves = [curve for curve in document["scaling"] if "calls" in curve]
    if not curves:
        return None
    figure, axes = plt.subplots(figsize=(8, 5))
    for curve in curves:
        label = f"{curve['family']}: exponent {curve['calls_exponent']:.2f}"
        axes.plot(curve["sizes"], curve["calls"], marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("size")
    axes.set_ylabel("Python and C calls per compile (exact)")
    axes.set_title("growth of compile work")
    axes.legend(frameon=False)
    return figure
