"""The report for browsers: one file, nothing loaded from anywhere. `fragment` is the part that notebooks show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from pathlib import Path

from .callsite import Place
from .model import Break, Cause, Compile, Run
from .summary import head, program, site_text, told_skips
from .svg import svg
from .words import count, key_text, milliseconds, place_text, stages_text, underlined

LARGEST_PICTURE = 400  # nodes; larger graphs are listed
BAR, LANE = 900.0, 26.0


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def html(run: Run) -> str:
    """The whole page."""
    title = f"minidynamo: {program(run)}"
    body = "".join(
        (
            _head(run),
            "<main>",
            _facts(run),
            _notes(run),
            _causes(run),
            _breaks(run),
            _skips(run),
            _timeline(run),
            _cause_pages(run),
            _frames(run),
            "</main>",
        )
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<style>{_asset('page.css')}</style></head><body>{body}<script>{_asset('page.js')}</script></body></html>"
    )


def fragment(run: Run) -> str:
    """Summary and tables, for a notebook."""
    return f'<div class="minidynamo"><p><b>minidynamo</b> {escape(head(run))}</p>{_causes(run)}{_breaks(run)}{_skips(run)}</div>'


def _head(run: Run) -> str:
    links = (("causes", "causes"), ("breaks", "graph breaks"), ("timeline", "timeline"), ("frames", "frames"))
    nav = "".join(f'<a href="#{target}">{text}</a>' for target, text in links)
    return (
        f"<header><h1>minidynamo · {escape(program(run))}</h1><nav>{nav}</nav>"
        '<input id="search" type="search" placeholder="search ( / )" aria-label="search"><span id="found" class="dim"></span>'
        "</header>"
    )


def _facts(run: Run) -> str:
    again = run.avoidable
    facts = (
        (str(len(run.functions)), "functions"),
        (str(len(run.compiles)), "compilations"),
        (str(len(again)), "avoidable"),
        (f"{run.seconds:.2f} s", "compiling"),
        (f"{sum(c.seconds for c in again):.2f} s", "avoidable"),
        (str(len(run.breaks)), "places of graph breaks"),
        ("?" if run.exit is None else str(run.exit), "exit code"),
    )
    return (
        '<div class="facts">' + "".join(f'<div class="fact"><b>{v}</b>{n}</div>' for v, n in facts) + "</div>"
    )


def _notes(run: Run) -> str:
    return "".join(f'<p class="bad">note: {escape(text)}</p>' for text in run.problems)


def _table(name: str, headings: Iterable[str], rows: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{escape(h)}</th>' for h in headings)
    return f'<table aria-label="{escape(name)}"><thead><tr>{cells}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _row(cells: Iterable[tuple[str, str]], to: str, words: str) -> str:
    inner = "".join(f'<td class="{kind}">{value}</td>' for kind, value in cells)
    return f'<tr tabindex="0" data-to="{to}" data-text="{escape(words.lower())}">{inner}</tr>'


def _causes(run: Run) -> str:
    if not run.causes:
        return '<h2 id="causes">Recompilations</h2><p>None.</p>'
    headings = (
        "#",
        "function",
        "what",
        "code",
        "old → new",
        "passed or written at",
        "compiles",
        "lost",
        "goes on",
        "fix",
    )
    rows = []
    for c in run.causes:
        cells = (
            ("number", str(c.number)),
            ("mono", escape(c.function)),
            ("mono", escape(c.name)),
            ("", c.code),
            ("mono", escape(f"{c.old} → {c.new}")),
            ("mono", escape(site_text(c))),
            ("number", str(c.compiles)),
            ("number", f"{c.seconds:.2f} s"),
            ("", escape(c.ends)),
            ("mono good", escape(c.fix)),
        )
        rows.append(
            _row(cells, f"cause-{c.number}", f"{c.function} {c.name} {c.code} {c.fix} {site_text(c)}")
        )
    return '<h2 id="causes">Recompilations</h2>' + _table("causes", headings, rows)


def _breaks(run: Run) -> str:
    if not run.breaks:
        return '<h2 id="breaks">Graph breaks</h2><p>None.</p>'
    headings = ("", "at", "line", "reason", "code", "calls", "before | after", "fix")
    rows = [_break_row(run, row) for row in run.breaks]
    return '<h2 id="breaks">Graph breaks</h2>' + _table("graph breaks", headings, rows)


def _break_row(run: Run, row: Break) -> str:
    after = "?" if row.after < 0 else str(row.after)
    cells = (
        ("", row.letter),
        ("mono", escape(place_text(row.place, False))),
        ("mono", escape(row.place.text)),
        ("", escape(row.text)),
        ("", row.code),
        ("number", str(row.count)),
        ("number", f"{row.before} | {after}"),
        ("good", escape(row.hint)),
    )
    made = next((c for c in run.compiles if c.key[0] == row.place.file and c.key[2] == row.function), None)
    return _row(
        cells,
        _anchor(made) if made is not None else "frames",
        f"{row.function} {row.text} {row.code} {row.hint}",
    )


def _skips(run: Run) -> str:
    found = told_skips(run)
    if not found:
        return ""
    rows = [
        _row(
            (
                ("mono", escape(key_text(s.key))),
                ("mono", escape(s.key[2])),
                ("", escape(s.text)),
                ("", s.code),
                ("good", escape(s.hint)),
            ),
            "frames",
            f"{s.key[2]} {s.text} {s.code}",
        )
        for s in found
    ]
    return "<h2>Not compiled</h2>" + _table(
        "frames that are not compiled", ("at", "function", "why", "code", "fix"), rows
    )


# --- timeline --------------------------------------------------------------------------------------------------------
def _timeline(run: Run) -> str:
    if not run.compiles:
        return ""
    lanes = {key: index for index, key in enumerate(run.functions)}
    end = max(c.at for c in run.compiles)
    begin = min(c.at - c.seconds for c in run.compiles)
    scale = BAR / max(end - begin, 1e-9)
    height = LANE * len(lanes) + 8
    out = [
        f'<h2 id="timeline">Timeline</h2><div class="chart"><svg viewBox="0 0 {BAR + 260:.0f} {height:.0f}" '
        f'width="{BAR + 260:.0f}" height="{height:.0f}" role="img" font-size="12"><title>when what was compiled</title>'
    ]
    for key, lane in lanes.items():
        y = LANE * lane + 17
        out.append(f'<text x="0" y="{y:.1f}" fill="var(--ink)">{escape(key[2][-36:])}</text>')
    for c in run.compiles:
        x = 250 + (c.at - c.seconds - begin) * scale
        colour = "var(--bad)" if c.again else "var(--accent)"
        told = f"{c.key[2]} {c.id}: {milliseconds(c.seconds)} ms ({stages_text(c.stages)})"
        out.append(
            f'<rect x="{x:.1f}" y="{LANE * lanes[c.key] + 4:.1f}" width="{max(2.0, c.seconds * scale):.1f}" height="18" rx="3" '
            f'fill="{colour}" fill-opacity="0.8"><title>{escape(told)}</title></rect>'
        )
    out.append("</svg></div>")
    out.append('<p class="dim">first compilations in blue, recompilations in red; hover for the stages</p>')
    return "".join(out)


# --- pages -----------------------------------------------------------------------------------------------------------
def _cause_pages(run: Run) -> str:
    return "".join(_cause_page(run, cause) for cause in run.causes)


def _cause_page(run: Run, cause: Cause) -> str:
    rows = [
        ("guard", f"<code>{escape(cause.guard)}</code>"),
        ("changed", f"<code>{escape(f'{cause.old} → {cause.new}')}</code>"),
    ]
    rows += [
        (name, shown)
        for name, shown in (("used", _source(cause.used)), (cause.site_kind or "at", _source(cause.site)))
        if shown
    ]
    rows += [("or", _source(place)) for place in cause.writers[1:]]
    rows.append(("values", f"<code>{escape(', '.join(dict.fromkeys(cause.values)))}</code>"))
    rows.append(
        (
            "cost",
            f"{count(cause.compiles, 'compile')}, {milliseconds(cause.seconds)} ms ({stages_text(cause.stages)})",
        )
    )
    rows.append(("goes on", escape(cause.ends)))
    edits = "".join(
        f"<del>- {escape(e['before'].strip())}</del><ins>+ {escape(e['after'].strip())}</ins>"
        for e in cause.edits
    )
    rows.append(
        ("fix", f'<code class="good">{escape(cause.fix)}</code>' + (f"<pre>{edits}</pre>" if edits else ""))
    )
    body = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows)
    title = f"{cause.number}. {cause.function}: {cause.name} [{cause.code}]"
    words = escape(f"{cause.function} {cause.name} {cause.code}".lower())
    return f'<details id="cause-{cause.number}" data-text="{words}"><summary>{escape(title)}</summary><table>{body}</table></details>'


def _source(place: Place | None) -> str:
    lines = underlined(place)
    if not lines:
        return escape(place_text(place))
    return f"{escape(place_text(place))}<pre>{escape(chr(10).join(lines))}</pre>"


def _anchor(made: Compile) -> str:
    return f"frame-{made.pid}-{made.n}"


def _frames(run: Run) -> str:
    headings = ("id", "function", "at", "operators", "ends with", "hits", "ms", "backend")
    rows = [
        _row(
            (
                ("mono", c.id),
                ("mono", escape(c.key[2] + (" (resumed)" if c.resume else ""))),
                ("mono", escape(key_text(c.key))),
                ("number", str(c.ops)),
                ("", escape(c.exit)),
                ("number", "?" if c.hits is None else str(c.hits)),
                ("number", milliseconds(c.seconds)),
                ("", escape(c.backend)),
            ),
            _anchor(c),
            f"{c.id} {c.key[2]} {c.exit}",
        )
        for c in run.compiles
    ]
    pages = "".join("".join(_frame_page(c)) for c in run.compiles)
    return '<h2 id="frames">Compiled frames</h2>' + _table("compiled frames", headings, rows) + pages


def _frame_page(c: Compile) -> Iterator[str]:
    words = escape(f"{c.id} {c.key[2]}".lower())
    hits = "?" if c.hits is None else c.hits
    yield f'<details id="{_anchor(c)}" data-text="{words}"><summary>{escape(f"{c.id} {c.key[2]}")} · {hits} hits</summary>'
    detail = c.detail
    if detail:
        yield '<div class="three">'
        yield f"<div><h3>source</h3><pre>{_listing_of_source(detail['source'])}</pre></div>"
        yield f"<div><h3>bytecode before ({len(detail['before'])})</h3><pre>{_listing(detail['before'])}</pre></div>"
        yield f"<div><h3>bytecode after ({len(detail['after'])})</h3><pre>{_listing(detail['after'])}</pre></div></div>"
        yield f"<h3>the new code as statements</h3><pre>{escape(detail['output'])}</pre>"
    yield f"<h3>guards: true {hits} times after the first run</h3><pre>{_guards(c)}</pre>"
    if detail and detail["nodes"]:
        yield f"<h3>graph: {c.ops} operators</h3>"
        if len(detail["nodes"]) <= LARGEST_PICTURE:
            yield f'<div class="picture">{svg(detail["nodes"], f"graph of {c.id}")}</div>'
        yield f"<details><summary>as Python</summary><pre>{escape(detail['code'])}</pre></details>"
    yield "</details>"


def _guards(c: Compile) -> str:
    lines = []
    for index, (text, meaning) in enumerate(c.guards):
        word = "return (" if index == 0 else "    and "
        lines.append(f'{word}{escape(text)}  <span class="dim"># {escape(meaning)}</span>')
    if not lines:
        return "return True"
    return "\n".join([*lines, ")"])


def _listing_of_source(rows: list[list[object]]) -> str:
    return escape("\n".join(f"{number:>4}  {line}" for number, line in rows))


def _listing(rows: list[list[object]]) -> str:
    out, last = [], None
    for line, offset, name, argument in rows:
        shown = f"{line:>4}" if line is not None and line != last else "    "
        last = line if line is not None else last
        out.append(f"{shown} {offset:>4} {name} {argument}".rstrip())
    return escape("\n".join(out))
