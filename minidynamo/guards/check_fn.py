"""Guards become one Python expression, compiled to `check_fn` and run once on the frame that it came from."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from minidynamo import exc
from minidynamo.guards import leaves
from minidynamo.guards.builder import READ_ERRORS, GuardBuilder, Rows
from minidynamo.guards.diagnose import explain_failure
from minidynamo.guards.guard import Guard
from minidynamo.guards.order import order
from minidynamo.guards.rows import GuardRow
from minidynamo.guards.text import text
from minidynamo.literals import is_immutable
from minidynamo.sources import FrameValues, check_local_name

VALID = "___guarded_code.valid"


@dataclass(frozen=True, slots=True, eq=False)
class CheckFn:
    """A compiled set of guards.

    fn: the raw function, called as fn(*flat argument values, globals, closure); truth means "still valid"
    source_text: the whole expression; parts: its conjuncts after the validity flag, one per row of `rows`
    expected, users: per row, the expectation in words and the user's (filename, line) where known
    names: the flat argument names; namespace: the globals of `fn`
    keep: weak references whose callbacks clear the validity flag, and immutable objects that ids stand for
    """

    fn: Callable[..., Any]
    source_text: str
    rows: tuple[GuardRow, ...]
    parts: tuple[str, ...]
    names: tuple[str, ...]
    filename: str
    namespace: dict[str, Any] = field(repr=False)
    expected: dict[GuardRow, str] = field(repr=False)
    users: dict[GuardRow, tuple[str, int]] = field(repr=False)
    keep: tuple[Any, ...] = field(repr=False)

    def __call__(self, *args: Any) -> Any:
        return self.fn(*args)

    def run(self, frame: FrameValues) -> bool:
        """The verdict on a frame. A guard that raises is a failed guard."""
        try:
            return bool(self.fn(*(frame.locals[name] for name in self.names), frame.globals, frame.closure))
        except Exception:
            return False


def flat_names(code: CodeType) -> tuple[str, ...]:
    """The parameters of `code` in the order of its slots: positional, keyword-only, *args, **kwargs."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


class CheckFunctionManager:
    """Builds the rows of `guards` on `frame` and compiles them for `code`.

    `validity` is an object with a settable `valid`; it is cleared when an object dies that a guard identifies
    by id. `guard_nn_modules=False` leaves out the guards marked as those of modules. `python_leaves=True`
    uses the Python helpers even where the native ones are built.

    Raises Unsupported when an argument's name cannot be written in guard text.
    """

    def __init__(
        self,
        guards: Iterable[Guard],
        frame: FrameValues,
        code: CodeType,
        validity: Any,
        *,
        guard_nn_modules: bool = True,
        python_leaves: bool = False,
    ) -> None:
        self.guards = sorted(dict.fromkeys(guards), key=Guard.sort_key)
        self.frame = frame
        self.code = code
        self.validity = validity
        self.guard_nn_modules = guard_nn_modules
        self.python_leaves = python_leaves
        self.names = flat_names(code)
        for name in self.names:
            check_local_name(name)

    def rows(self) -> Rows:
        """The rows that the guards make on the frame, in the order of the guards."""
        out = Rows()
        local_builder, global_builder = GuardBuilder(self.frame, out), GuardBuilder(self.frame, out)
        for guard in self.guards:
            if self.guard_nn_modules or not guard.is_nn_module():
                try:
                    guard.create(local_builder, global_builder)
                except READ_ERRORS as error:
                    raise local_builder.error(guard, f"{type(error).__name__}: {error}") from error
        return out

    def compile_check_fn(self) -> CheckFn:
        """The check_fn. Raises InternalError that names the guard and its user line when the text is invalid,
        raises, or is false on the very frame it was made from.
        """
        made = self.rows()
        rows = tuple(order(made.rows))
        parts = tuple(map(text, rows))
        source = " and ".join((VALID, *parts))
        filename = f"<minidynamo guards of {self.code.co_qualname}>"
        namespace = leaves.helpers(python=self.python_leaves)
        namespace |= {
            "___builtins": self.frame.builtins,
            "___guarded_code": self.validity,
            "__builtins__": {},
        }
        check = CheckFn(
            fn=self._compile(source, parts, filename, namespace),
            source_text=source,
            rows=rows,
            parts=parts,
            names=self.names,
            filename=filename,
            namespace=namespace,
            expected=made.expected,
            users={row: guard.user for row, guard in made.rows.items() if guard.user is not None},
            keep=self._keep(made.watched.values()),
        )
        self._prove(check)
        return check

    def _compile(
        self, source: str, parts: tuple[str, ...], filename: str, namespace: dict[str, Any]
    ) -> Callable[..., Any]:
        signature = ", ".join((*self.names, "___globals", "___closure"))
        try:
            code = compile(f"lambda {signature}: {source}", filename, "eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            broken = next((part for part in parts if not _compiles(part)), source)
            raise exc.InternalError(
                f"guard `{broken}` of {self._place()} does not compile: {error}"
            ) from error
        fn: Callable[..., Any] = eval(code, namespace)
        return fn

    def _keep(self, objects: Iterable[Any]) -> tuple[Any, ...]:
        validity = self.validity

        def dead(_: object) -> None:
            validity.valid = False

        return tuple(obj if is_immutable(obj) else weakref.ref(obj, dead) for obj in objects)

    def _prove(self, check: CheckFn) -> None:
        if check.run(self.frame):
            return
        failure = explain_failure(check, self.frame)
        if failure is None:
            raise exc.InternalError(
                f"the guards of {self._place()} fail as a whole, yet every one of them holds"
            )
        made_by = f", needed by {failure.user[0]}:{failure.user[1]}" if failure.user else ""
        raise exc.InternalError(
            f"guard `{failure.part}` of {self._place()}{made_by} does not hold on the frame it was made "
            f"from: expected {failure.expected}, found {failure.actual}"
        )

    def _place(self) -> str:
        return f"{self.code.co_qualname} ({self.code.co_filename}:{self.code.co_firstlineno})"


def _compiles(part: str) -> bool:
    try:
        compile(part, "<guard>", "eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True
