"""How reports write things: places, seconds, values, colour."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TextIO

from .callsite import Place
from .model import Key

WIDTH_WITHOUT_TERMINAL = 120
TABLE_FROM = 90  # columns; narrower terminals get a block per cause


def short_path(file: str) -> str:
    """`file` relative to the working directory where that is shorter."""
    try:
        near = os.path.relpath(file)
    except ValueError:
        return file
    return near if len(near) < len(file) and not near.startswith("..") else file


def place_text(place: Place | None, columns: bool = True) -> str:
    """`train.py:34:26`: file, line, column (1-based) where one is meant; "" for None."""
    if place is None:
        return ""
    return f"{short_path(place.file)}:{place.line}" + (f":{place.begin + 1}" if place.end and columns else "")


def key_text(key: Key) -> str:
    """`train.py:18`."""
    return f"{short_path(key[0])}:{key[1]}"


def seconds_text(seconds: float) -> str:
    """`0.11 s`."""
    return f"{seconds:.2f} s"


def milliseconds(seconds: float) -> str:
    """A number of milliseconds: `48`, `1.3`, `0.04`."""
    value = seconds * 1e3
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def cut(text: str, width: int) -> str:
    """`text`, or its beginning and `…`."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def count(number: int, noun: str) -> str:
    """`1 compile`, `2 compiles`."""
    return f"{number} {noun}" + ("s" if number != 1 else "")


STAGES = (
    ("trace", ("lift", "translate")),
    ("guards", ("guards",)),
    ("backend", ("backend",)),
    ("install", ("emit", "assemble")),
)


def stages_text(stages: dict[str, float]) -> str:
    """`trace 9, guards 2, backend 35, install 2` (milliseconds)."""
    return ", ".join(
        f"{name} {milliseconds(sum(stages.get(part, 0.0) for part in parts))}" for name, parts in STAGES
    )


def underlined(place: Place | None) -> list[str]:
    """The source line of a place, and carets below what is meant."""
    if place is None or not place.source.strip():
        return []
    indent = len(place.source) - len(place.source.lstrip())
    lines = [place.source.strip()]
    if place.end > place.begin >= indent:
        lines.append(" " * (place.begin - indent) + "^" * max(1, place.end - place.begin))
    return lines


@dataclass(frozen=True, slots=True)
class Style:
    """Where a report goes: width in columns, whether it is a terminal, whether colour is wanted."""

    width: int
    terminal: bool
    colour: bool

    def paint(self, text: str, code: str) -> str:
        """`text` in the terminal's colour `code` ("1" bold, "2" dim, "31" red, ...)."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def style_for(out: TextIO, colour: str = "auto", width: int | None = None) -> Style:
    """The style of a stream. NO_COLOR, FORCE_COLOR and COLUMNS count; without a terminal lines are 120 wide."""
    terminal = out.isatty()
    if colour == "auto":
        wanted = terminal and os.environ.get("TERM") != "dumb"
        wanted = wanted or bool(os.environ.get("FORCE_COLOR"))
        wanted = wanted and not os.environ.get("NO_COLOR")
    else:
        wanted = colour == "always"
    if width is None:
        columns = os.environ.get("COLUMNS", "")
        if columns.isdigit() and int(columns) > 0:
            width = int(columns)
        else:
            width = (
                shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns
                if terminal
                else WIDTH_WITHOUT_TERMINAL
            )
    return Style(max(20, width), terminal, wanted)


def standard_style(colour: str = "auto", width: int | None = None) -> Style:
    """`style_for` standard output."""
    return style_for(sys.stdout, colour, width)
