"""An FX graph as SVG, DOT or text, from a recording's nodes."""

from __future__ import annotations

from html import escape

from .layout import boxes
from .schema import Record

CHARACTER, HEIGHT, GAP, STEP, MARGIN = 7.0, 40.0, 16.0, 76.0, 12.0
LONGEST = 30


def svg(nodes: list[Record], title: str = "graph") -> str:
    """The graph as a picture; colours follow the page's `--…` variables, or are dark on white."""
    labels = {node["name"]: _labels(node) for node in nodes}
    widths = {name: 18 + CHARACTER * max(map(len, lines)) for name, lines in labels.items()}
    inputs = {node["name"]: node["inputs"] for node in nodes}
    placed, width, height = boxes(inputs, widths, HEIGHT, GAP, STEP)
    w, h = width + 2 * MARGIN, height + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" role="img" '
        f'font-family="ui-monospace,monospace" font-size="12"><title>{escape(title)}</title>'
    ]
    for node in nodes:
        for source in node["inputs"]:
            if source in placed:
                a, b = placed[source], placed[node["name"]]
                x1, y1, x2, y2 = a.x + MARGIN, a.y + HEIGHT + MARGIN, b.x + MARGIN, b.y + MARGIN
                middle = (y1 + y2) / 2
                path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
                out.append(f'<path d="{path}" fill="none" stroke="var(--edge,#889)" stroke-width="1.2"/>')
    for node in nodes:
        box, lines = placed[node["name"]], labels[node["name"]]
        x, y = box.x - box.width / 2 + MARGIN, box.y + MARGIN
        fill = {"placeholder": "var(--in,#dbeafe)", "output": "var(--out,#dcfce7)"}.get(
            node["op"], "var(--box,#f1f2f6)"
        )
        out.append(
            f"<g><title>{escape(node['target'])}({escape(node['args'])})</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{HEIGHT}" rx="6" fill="{fill}" '
            'stroke="var(--edge,#889)"/>'
        )
        for index, line in enumerate(lines):
            weight = ' font-weight="bold"' if index == 0 else ""
            at = y + (16 if len(lines) > 1 else 24) + 16 * index
            out.append(
                f'<text x="{box.x + MARGIN:.1f}" y="{at:.1f}" text-anchor="middle" fill="var(--ink,#111)"{weight}>'
                f"{escape(line)}</text>"
            )
        out.append("</g>")
    return "".join([*out, "</svg>"])


def _labels(node: Record) -> list[str]:
    name = node["name"]
    if node["op"] == "placeholder":
        return [_cut(name), "input"]
    if node["op"] == "output":
        return ["output"]
    target = node["target"].rpartition(".")[2]
    return [_cut(target), _cut(name)] if target != name else [_cut(target)]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def dot(nodes: list[Record], title: str = "graph") -> str:
    """For Graphviz."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    out = [f"digraph {quoted(title)} {{", "  node [shape=box];"]
    for node in nodes:
        label = (
            node["name"] if node["op"] in ("placeholder", "output") else f"{node['target']}\\n{node['name']}"
        )
        out.append(
            f"  {quoted(node['name'])} [label={quoted(label).replace(chr(92) * 2 + 'n', chr(92) + 'n')}];"
        )
        out += [f"  {quoted(source)} -> {quoted(node['name'])};" for source in node["inputs"]]
    return "\n".join([*out, "}"])


def text(nodes: list[Record]) -> str:
    """One line per node."""
    width = max((len(node["name"]) for node in nodes), default=0)
    return "\n".join(f"{node['name']:<{width}} = {_call(node)}".rstrip() for node in nodes)


def _call(node: Record) -> str:
    if node["op"] == "placeholder":
        return "input"
    if node["op"] == "output":
        return f"output {node['args']}"
    return f"{node['target']}({node['args']})"
