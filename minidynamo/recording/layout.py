"""A layered drawing of a graph: layers by longest path, order inside of a layer by barycentres, two sweeps down and up.

(Sugiyama, Tagawa, Toda: Methods for visual understanding of hierarchical system structures, 1981; without dummy nodes.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Box:
    """Where a node stands: its centre's x, its top y, width."""

    x: float
    y: float
    width: float


def layers(inputs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Nodes by longest distance from a node without inputs. `inputs` is in topological order; unknown names are left out. A node that
    only feeds much deeper ones (an input of the graph) is moved down to just above its first user."""
    depth: dict[str, int] = {}
    for name, sources in inputs.items():
        depth[name] = 1 + max((depth[s] for s in sources if s in depth), default=-1)
    users: dict[str, list[str]] = {name: [] for name in inputs}
    for name, sources in inputs.items():
        for source in sources:
            if source in users:
                users[source].append(name)
    for name in reversed(list(inputs)):
        if users[name] and not any(s in depth for s in inputs[name]):
            depth[name] = min(depth[user] for user in users[name]) - 1
    out: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for name in inputs:
        out[depth[name]].append(name)
    return out


def ordered(rows: list[list[str]], inputs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Each layer sorted by the mean position of the nodes that its nodes are connected with."""
    rows = [list(row) for row in rows]
    links: dict[str, list[str]] = {
        name: [s for s in sources if s in inputs] for name, sources in inputs.items()
    }
    back: dict[str, list[str]] = {name: [] for name in inputs}
    for name, sources in links.items():
        for source in sources:
            back[source].append(name)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = links if down else back
        place = {name: index / max(1, len(row) - 1) for row in rows for index, name in enumerate(row)}
        for row in rows if down else reversed(rows):
            means = {
                name: sum(place[n] for n in neighbours[name]) / len(neighbours[name])
                if neighbours[name]
                else place[name]
                for name in row
            }
            row.sort(key=lambda name: means[name])
            place.update({name: index / max(1, len(row) - 1) for index, name in enumerate(row)})
    return rows


def boxes(
    inputs: Mapping[str, Sequence[str]], widths: Mapping[str, float], height: float, gap: float, step: float
) -> tuple[dict[str, Box], float, float]:
    """(box of each node, width and height of the drawing). No two boxes of a layer overlap."""
    rows = ordered(layers(inputs), inputs)
    lengths = [sum(widths[name] for name in row) + gap * (len(row) - 1) for row in rows]
    whole = max(lengths, default=0.0)
    placed: dict[str, Box] = {}
    for index, (row, length) in enumerate(zip(rows, lengths)):
        x = (whole - length) / 2
        for name in row:
            placed[name] = Box(x + widths[name] / 2, index * step, widths[name])
            x += widths[name] + gap
    return placed, whole, max(0.0, (len(rows) - 1) * step + height) if rows else 0.0
