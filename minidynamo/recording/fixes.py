"""What to do about a cause: one line of advice, and where the program's text allows it the edited lines themselves.

An edit replaces one line. It is made from the syntax tree while the program runs, so it can be applied to the file as it was.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .callsite import Passed, Place, Site, place_of, tree_of
from .causes import Change, is_number
from .writers import Writer


@dataclass(frozen=True, slots=True)
class Edit:
    """Line `line` of `file` is `before` and should become `after`."""

    file: str
    line: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Fix:
    """`text`: one line; `edits`: what it means in the program's text, () where nothing can be said."""

    text: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """What a fix is made from. `calls`: every call of the function that compiled it, with what it passes for the argument that
    varies (None: not passed); `writers`: statements that may write the place; `seen`: values seen; `used`: where it is read; `mend`: the
    fix of a value that a graph break made, or made an argument."""

    change: Change
    failure: Any
    calls: tuple[tuple[Site, Passed | None], ...]
    writers: tuple[Writer, ...]
    seen: tuple[str, ...]
    used: Place | None = None
    mend: str = ""


def fix_of(about: Situation) -> Fix:
    """The fix for a cause; its row's advice where no better one can be made."""
    if about.mend:
        return Fix(about.mend)
    make = _FIXES.get(about.change.reason.code)
    made = make(about) if make is not None else None
    return made or Fix(about.change.reason.hint)


# --- edits -----------------------------------------------------------------------------------------------------------
def wrap(place: Place, template: str) -> Edit | None:
    """The expression at `place` inside `template` ({0}); None when it does not stand on one line. Parentheses where needed."""
    if not place.end or place.source[place.begin : place.end] != place.text:
        return None
    inner = place.text
    if "{0}." in template or "{0}[" in template:
        inner = inner if _binds_tightly(inner) else f"({inner})"
    after = place.source[: place.begin] + template.replace("{0}", inner) + place.source[place.end :]
    return Edit(place.file, place.line, place.source, after)


def _binds_tightly(text: str) -> bool:
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return False
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict))


def _wrapped_arguments(about: Situation, template: str) -> tuple[Edit, ...]:
    edits = {}
    for site, given in about.calls:
        if given is None or given.star or given.node.lineno != given.node.end_lineno:
            continue
        edit = wrap(site.place_of(given.node), template)
        if edit is not None:
            edits[edit.file, edit.line] = edit
    return tuple(edits.values())


def _one(edits: tuple[Edit, ...], otherwise: str, note: str = "") -> Fix:
    """The newest edit as the advice's text."""
    if not edits:
        return Fix(otherwise)
    return Fix(edits[-1].after.strip() + (f"  # {note}" if note else ""), edits)


def _statement_edits(about: Situation, prefix: str) -> tuple[Edit, ...]:
    """`prefix` before the (one-line) statement of the newest call."""
    if not about.calls:
        return ()
    place = about.calls[-1][0].place
    tree = tree_of(place.file)
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)] if tree is not None else []
    inside = [n for n in nodes if n.lineno <= place.line <= (n.end_lineno or n.lineno)]
    if not inside:
        return ()
    statement = max(inside, key=lambda n: (n.lineno, n.col_offset))
    source = linecache.getline(place.file, place.line).rstrip("\n")
    simple = statement.lineno == statement.end_lineno and isinstance(
        statement, (ast.Expr, ast.Assign, ast.AugAssign)
    )
    if not simple or source[: statement.col_offset].strip():
        return ()
    indent = source[: len(source) - len(source.lstrip())]
    return (Edit(place.file, place.line, source, f"{indent}{prefix}{source.strip()}"),)


# --- one function per code ---------------------------------------------------------------------------------------------
def _size(about: Situation) -> Fix | None:
    at, change = about.change.dimension, about.change
    numbers = [int(text) for text in (*about.seen, change.old, change.new) if text.isdigit()]
    if at < 0 or not numbers:
        return None
    rank = len(
        [piece for piece in about.failure.expected.partition(" ")[2].strip("()").split(",") if piece.strip()]
    )
    zeros = "0, 0, " * (rank - 1 - at)
    # the pad goes at the end of dimension `at`; the size is asked of the very tensor that is passed
    edits = []
    for site, given in about.calls:
        if given is None or given.star or not isinstance(given.node, ast.Name):
            continue
        name = given.node.id
        pad = f"torch.nn.functional.pad({{0}}, ({zeros}0, {max(numbers)} - {name}.size({at})))"
        edit = wrap(site.place_of(given.node), pad)
        if edit is not None:
            edits.append(edit)
    unique = {(e.file, e.line): e for e in edits}
    return _one(tuple(unique.values()), change.reason.hint, "padded to the largest size seen")


def _argument(template: str, note: str = "") -> Callable[[Situation], Fix | None]:
    return lambda about: _one(_wrapped_arguments(about, template), about.change.reason.hint, note)


def _metadata(about: Situation) -> Fix | None:
    template = f"{{0}}.to({about.change.old!r})"
    if about.change.part == "dtype":
        template = f"{{0}}.to(torch.{about.change.old})"
    return _one(_wrapped_arguments(about, template), about.change.reason.hint)


def _grad(about: Situation) -> Fix | None:
    if about.failure.kind == "TENSOR_MATCH":
        return _one(
            _wrapped_arguments(about, "{0}.detach()"), about.change.reason.hint, "without its gradient"
        )
    enabled = about.change.old == "on"
    if about.change.part == "grad mode":
        return _one(
            _statement_edits(about, f"with torch.set_grad_enabled({enabled}): "), about.change.reason.hint
        )
    return _one(_statement_edits(about, f"with torch.inference_mode({enabled}): "), about.change.reason.hint)


def _decision(about: Situation) -> str:
    """The test of an `if` or `while` on the line that reads the value, "" when it is read for something else."""
    if about.used is None:
        return ""
    tree = tree_of(about.used.file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.If, ast.While, ast.IfExp)) and node.test.lineno == about.used.line:
            if about.used.text and about.used.text in ast.unparse(node.test):
                return ast.unparse(node.test)
    return ""


def _number(about: Situation) -> Fix | None:
    decision = _decision(about)
    if decision:
        return Fix(f"decide outside: pass `{decision}` as a bool in place of {about.change.name}")
    if not all(map(is_number, (about.change.old, about.change.new))):
        return Fix("use one compiled function per value, or keep it constant")
    return _one(_wrapped_arguments(about, "torch.tensor({0})"), "pass a tensor: torch.tensor(...)")


def _written(about: Situation) -> Fix | None:
    decision = _decision(about)
    if decision:
        return Fix(f"decide outside: pass `{decision}` as a bool in place of {about.change.name}")
    if not all(map(is_number, (about.change.old, about.change.new))):
        return Fix(f"keep {about.change.name} constant, or pass it as an argument")
    buffer = about.failure.owner == "module"
    edits = {}
    for writer in about.writers:
        value = writer.value
        if not isinstance(value, ast.expr) or value.lineno != value.end_lineno or _reads(value, about):
            continue
        initial = buffer and writer.function.endswith("__init__")
        edit = (
            _buffer(writer)
            if initial
            else wrap(place_of(writer.place.file, writer.value), "torch.tensor({0})")
        )
        if edit is not None:
            edits[edit.file, edit.line] = edit
    if not edits:
        return Fix(f"keep {about.change.name} in a tensor" + (" (a buffer)" if buffer else ""))
    first = next(iter(edits.values()))
    return Fix(first.after.strip(), tuple(edits.values()))


def _reads(value: ast.expr, about: Situation) -> bool:
    """The assigned expression reads the place itself, as `k + 1` in `k = k + 1`: a tensor there stays one."""
    kind, text = about.failure.member
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and kind == "name" and node.id == text:
            return True
        if isinstance(node, ast.Attribute) and kind == "attr" and node.attr == text:
            return True
    return False


def _buffer(writer: Writer) -> Edit | None:
    """`self.step = 0` as `self.register_buffer("step", torch.tensor(0))`."""
    source = writer.place.source
    statement = ast.parse(source.strip()).body[0] if writer.place.text else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return None
    target, value = statement.targets[0], ast.unparse(statement.value)
    made = f'{ast.unparse(target.value)}.register_buffer("{target.attr}", torch.tensor({value}))'
    after = source[: writer.place.begin] + made + source[writer.place.end :]
    return Edit(writer.place.file, writer.place.line, source, after)


def _type(about: Situation) -> Fix | None:
    converter = about.failure.type or about.change.old
    if about.failure.kind == "TENSOR_MATCH" and about.change.old.startswith("Parameter"):
        return Fix("pass the parameter, or its .data, in every call")
    if converter not in ("int", "float", "bool", "str", "list", "tuple", "dict", "set"):
        return None
    return _one(_wrapped_arguments(about, f"{converter}({{0}})"), about.change.reason.hint)


def _structure(about: Situation) -> Fix | None:
    if about.failure.kind == "LENGTH" and about.change.old.isdigit():
        edits = _wrapped_arguments(about, f"{{0}}[:{about.change.old}]")
        return _one(edits, about.change.reason.hint, "pass what is used") if _is_sequence(about) else None
    if about.failure.kind == "DICT_KEYS":
        keys = about.failure.expected.removeprefix("keys ")
        return _one(
            _wrapped_arguments(about, f"{{k: {{0}}[k] for k in {keys}}}"),
            about.change.reason.hint,
            "pass what is used",
        )
    return None


def _is_sequence(about: Situation) -> bool:
    return about.failure.actual_type in ("list", "tuple")


def _aliasing(about: Situation) -> Fix | None:
    return _one(_wrapped_arguments(about, "{0}.clone()"), about.change.reason.hint)


def _function(about: Situation) -> Fix | None:
    made = about.change.new.rpartition("(")[2].rstrip(")")
    defined = f" (defined at {made})" if ":" in made else ""
    return Fix(f"make {about.change.name} once, before the loop{defined}")


# A mode of torch -> the text before the statement that calls, {0}: the old value.
_STATES: dict[str, str] = {
    "autocast on cpu": 'with torch.autocast("cpu", enabled={0}): ',
    "autocast on cuda": 'with torch.autocast("cuda", enabled={0}): ',
    "default dtype": "torch.set_default_dtype(torch.{1}); ",
    "deterministic algorithms": "torch.use_deterministic_algorithms({0}); ",
}


def _state(about: Situation) -> Fix | None:
    template = _STATES.get(about.change.part)
    if template is None:
        return Fix(f"call it with {about.change.name} {about.change.old} in every call")
    prefix = template.format(about.change.old == "on", about.change.old)
    return _one(_statement_edits(about, prefix), about.change.reason.hint)


_FIXES: dict[str, Callable[[Situation], Fix | None]] = {
    "MD101": _size,
    "MD102": _argument("{0}.contiguous()"),
    "MD103": _metadata,
    "MD104": _grad,
    "MD105": _number,
    "MD106": _number,
    "MD107": _written,
    "MD108": _function,
    "MD109": _type,
    "MD110": _structure,
    "MD111": _aliasing,
    "MD112": _state,
}
