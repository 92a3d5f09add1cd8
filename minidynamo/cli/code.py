"""`minidynamo code ID`: bytecode before and after, the new code as statements, and the guards of one compilation.

Imports neither torch nor the native extension. Exit codes: 0; 4 for what cannot be read.
"""

from __future__ import annotations

from itertools import zip_longest

from minidynamo.cli.recordings import answer, reading_parser
from minidynamo.recording.model import Compile, Run
from minidynamo.recording.reader import Unreadable
from minidynamo.recording.why import find_compile
from minidynamo.recording.words import Style, cut, key_text


def run(argv: list[str]) -> int:
    """The command."""
    parser = reading_parser("code", "Bytecode before and after, and the guards of one compilation.")
    parser.add_argument("id", metavar="ID", help="a compilation such as 0/1, or a function")
    options = parser.parse_args(argv)

    def make(found: Run, style: Style) -> str:
        made = find_compile(found, options.id)
        if not made.detail:
            raise Unreadable(f"{made.id} {made.key[2]}: the recording has no listings (MINIDYNAMO_REDACT?)")
        return "\n".join(lines(made, style.width))

    return answer("code", options, make)


def lines(made: Compile, width: int) -> list[str]:
    """Two columns of bytecode, then statements, then guards as Python."""
    left, right = _listing(made.detail["before"]), _listing(made.detail["after"])
    half = max(20, (width - 3) // 2)
    out = [f"{made.id} {made.key[2]} ({key_text(made.key)}): {made.exit}"]
    out.append(f"{f'before: {len(left)} instructions':<{half}} | after: {len(right)} instructions")
    out += [
        f"{cut(a, half):<{half}} | {cut(b, half)}".rstrip() for a, b in zip_longest(left, right, fillvalue="")
    ]
    out += ["", "statements", *(f"  {line}" for line in made.detail["output"].splitlines())]
    hits = "?" if made.hits is None else made.hits
    out += ["", f"guards (true {hits} times after the first run)"]
    return out + [f"  {text}    # {meaning}" for text, meaning in made.guards]


def _listing(rows: list[list[object]]) -> list[str]:
    out: list[str] = []
    last: object = None
    for line, offset, name, argument in rows:
        shown = f"{line:>4}" if line is not None and line != last else "    "
        last = line if line is not None else last
        out.append(f"{shown} {offset:>4} {name} {argument}".rstrip())
    return out
