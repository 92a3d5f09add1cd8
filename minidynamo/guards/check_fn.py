"""Guards become rows, and rows a `CheckFn`: a native program and one Python expression that mean the same. It is run once
on the frame that it came from."""

from __future__ import annotations

import inspect
import weakref
from array import array
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from minidynamo import exc
from minidynamo.cache import GuardProgram, Validity
from minidynamo.guards import leaves
from minidynamo.guards.builder import READ_ERRORS, GuardBuilder, Rows
from minidynamo.guards.diagnose import explain_failure
from minidynamo.guards.guard import Guard
from minidynamo.guards.lower import Program, lower, row_of
from minidynamo.guards.native import native_program
from minidynamo.guards.of_modules import InsideModules
from minidynamo.guards.order import order
from minidynamo.guards.program import witness
from minidynamo.guards.rows import GuardRow
from minidynamo.guards.text import text
from minidynamo.literals import is_immutable
from minidynamo.sources import FrameValues, Source, check_local_name

VALID = "___guarded_code.valid"


class CheckFn:
    """A set of guards that says whether an entry may be used.

    rows: what must hold, in the order of the checks; names: the flat argument names
    expected, users: per row, the expectation in words and the user's (filename, line) where known
    native: the native machine that runs the rows; None when text is run
    checks: per row, the index of its instruction there
    keep: weak references whose callbacks clear the validity flag, and immutable objects that ids stand for; ids: theirs

    The text (`source_text`, its conjuncts `parts`, one per row) and the function `fn` compiled from it are made when they
    are first asked for: parsing thousands of guards takes longer than a compilation may. The `program`, the rows as
    instructions, is made again when it is asked for after `forget_program`.
    """

    __slots__ = (
        "_fn",
        "_lower",
        "_namespace",
        "_parts",
        "_program",
        "builtins",
        "checks",
        "expected",
        "filename",
        "ids",
        "keep",
        "names",
        "native",
        "python_leaves",
        "rows",
        "users",
        "validity",
    )

    def __init__(
        self,
        rows: tuple[GuardRow, ...],
        names: tuple[str, ...],
        filename: str,
        builtins: dict[str, Any],
        validity: Any,
        *,
        expected: dict[GuardRow, str],
        users: dict[GuardRow, tuple[str, int]],
        keep: tuple[Any, ...],
        ids: array[int],
        python_leaves: bool,
    ) -> None:
        self.rows, self.names, self.filename = rows, names, filename
        self.builtins, self.validity, self.python_leaves = builtins, validity, python_leaves
        self.expected, self.users, self.keep, self.ids = expected, users, keep, ids
        self.native: GuardProgram | None = None
        self.checks: tuple[int, ...] = ()
        self._program: Program | None = None
        self._lower: tuple[tuple[Source, ...] | None, bool] | None = None  # what `lower` takes: inputs, torch
        self._namespace: dict[str, Any] | None = None
        self._parts: tuple[str, ...] | None = None
        self._fn: Callable[..., Any] | None = None

    @property
    def program(self) -> Program | None:
        """The instructions that the native machine runs; None when text is run."""
        if self._program is None and self._lower is not None:
            inputs, torch = self._lower
            return lower(self.rows, self.names, inputs=inputs, torch=torch)
        return self._program

    def lower(self, inputs: tuple[Source, ...] | None, torch: bool) -> Program:
        """Makes the program (see `lower`) and keeps it."""
        self._lower = inputs, torch
        self._program = lower(self.rows, self.names, inputs=inputs, torch=torch)
        self.checks = self._program.checks
        return self._program

    def forget_program(self) -> None:
        """Reports ask for it; a run does not."""
        self._program = None

    @property
    def parts(self) -> tuple[str, ...]:
        if self._parts is None:
            self._parts = tuple(map(text, self.rows))
        return self._parts

    @property
    def source_text(self) -> str:
        return " and ".join((VALID, *self.parts))

    @property
    def namespace(self) -> dict[str, Any]:
        """The globals of `fn`."""
        if self._namespace is None:
            own = {"___builtins": self.builtins, "___guarded_code": self.validity, "__builtins__": {}}
            self._namespace = leaves.helpers(python=self.python_leaves) | own
        return self._namespace

    @property
    def fn(self) -> Callable[..., Any]:
        """The compiled text, called as fn(*flat argument values, globals, closure); truth means "still valid"."""
        if self._fn is None:
            self._fn = self.compile_text(self.source_text)
        return self._fn

    def compile_text(self, source: str) -> Callable[..., Any]:
        """A function of the flat arguments, globals and closure. Raises what `compile` raises."""
        signature = ", ".join((*self.names, "___globals", "___closure"))
        code = compile(f"lambda {signature}: {source}", self.filename, "eval")
        fn: Callable[..., Any] = eval(code, self.namespace)
        return fn

    def died(self) -> GuardRow | None:
        """The first row that identifies an object by id that has died; None while all live, and where none of the rows does."""
        dead = {
            number for number, ref in zip(self.ids, self.keep) if type(ref) is weakref.ref and ref() is None
        }
        return next(
            (row for row in self.rows if any(type(x) is int and x in dead for x in row.literals)), None
        )

    @property
    def entry_point(self) -> Callable[..., Any]:
        """What the cache calls: the native machine, or `fn`."""
        return self.native if self.native is not None else self.fn

    def __call__(self, *args: Any) -> Any:
        return self.entry_point(*args)

    def holds(self, *args: Any) -> bool:
        """The verdict of the text. A guard that raises is a failed guard."""
        try:
            return bool(self.fn(*args))
        except Exception:
            return False

    def arguments(self, frame: FrameValues) -> tuple[Any, ...]:
        """What a call with the values of this frame passes."""
        return (*(frame.locals[name] for name in self.names), frame.globals, frame.closure)

    def run(self, frame: FrameValues) -> bool:
        """The verdict on a frame. A guard that raises is a failed guard. Raises InternalError in mode "both"."""
        try:
            return bool(self.entry_point(*self.arguments(frame)))
        except exc.InternalError:
            raise
        except Exception:
            return False

    def failed_row(self, frame: FrameValues) -> int | None:
        """The first row that the native machine finds false on a frame; None where it finds none or is not there."""
        if self.native is None:
            return None
        instruction = self.native.failed(*self.arguments(frame))
        return row_of(self.checks, instruction) if instruction >= 0 else None


def flat_names(code: CodeType) -> tuple[str, ...]:
    """The parameters of `code` in the order of its slots: positional, keyword-only, *args, **kwargs."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count]


class CheckFunctionManager:
    """Builds the rows of `guards` on `frame` and compiles them for `code`.

    `validity` is a Validity; it is cleared when an object dies that a guard identifies
    by id. `guard_nn_modules=False` leaves out the guards on what is inside of modules. `python_leaves=True`
    uses the Python helpers even where the native ones are built. `mode` is `config.guards`: which of text and native
    program the cache calls, or both.

    Raises Unsupported when an argument's name cannot be written in guard text.
    """

    def __init__(
        self,
        guards: Iterable[Guard],
        frame: FrameValues,
        code: CodeType,
        validity: Validity,
        *,
        guard_nn_modules: bool = True,
        python_leaves: bool = False,
        mode: str = "text",
    ) -> None:
        self.guards = sorted(dict.fromkeys(guards), key=Guard.sort_key)
        self.frame = frame
        self.code = code
        self.validity = validity
        self.guard_nn_modules = guard_nn_modules
        self.python_leaves = python_leaves
        self.mode = mode
        self.names = flat_names(code)
        for name in self.names:
            check_local_name(name)

    def rows(self) -> Rows:
        """The rows that the guards make on the frame, in the order of the guards."""
        out = Rows()
        local_builder, global_builder = GuardBuilder(self.frame, out), GuardBuilder(self.frame, out)
        for guard in self.kept():
            try:
                guard.create(local_builder, global_builder)
            except READ_ERRORS as error:
                raise local_builder.error(guard, f"{type(error).__name__}: {error}") from error
        return out

    def kept(self) -> list[Guard]:
        """The guards, without those on what is inside of modules where they are not wanted."""
        if self.guard_nn_modules:
            return self.guards
        inside = InsideModules(self.frame)
        return [guard for guard in self.guards if not guard.is_nn_module() and not inside.holds(guard)]

    def compile_check_fn(self, inputs: Iterable[Source] | None = None) -> CheckFn:
        """The check_fn, whose native program also loads `inputs` for the graph, if it can (see `lower`).

        Raises InternalError that names the guard and its user line when the text is invalid,
        raises, or is false on the very frame it was made from.
        """
        made = self.rows()
        users = {row: guard.user for row, guard in made.rows.items() if guard.user is not None}
        check = self.compiled(tuple(order(made.rows)), made.expected, users, made.watched, inputs)
        self._prove(check)
        return check

    def compiled(
        self,
        rows: tuple[GuardRow, ...],
        expected: dict[GuardRow, str],
        users: dict[GuardRow, tuple[str, int]],
        watched: dict[int, Any],
        inputs: Iterable[Source] | None,
    ) -> CheckFn:
        """A check_fn of these rows. Raises InternalError for invalid text. Arguments: see CheckFn, Rows."""
        check = CheckFn(
            rows,
            self.names,
            f"<minidynamo guards of {self.code.co_qualname}>",
            self.frame.builtins,
            self.validity,
            expected=expected,
            users=users,
            keep=self._keep(watched.values()),
            ids=array("Q", watched),
            python_leaves=self.python_leaves,
        )
        try:
            if self.mode == "text":
                check.fn  # noqa: B018  (compiled now, so that invalid text is found now)
            else:
                self._lower(check, inputs)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            broken = next((part for part in check.parts if not _compiles(part)), check.source_text)
            raise exc.InternalError(
                f"guard `{broken}` of {self._place()} does not compile: {error}"
            ) from error
        return check

    def _lower(self, check: CheckFn, inputs: Iterable[Source] | None) -> None:
        """Gives `check` its native program; without torch's part, or where that cannot state a tensor's metadata, the
        guards on tensors stay text."""
        native_leaf = leaves.native is not None and not self.python_leaves
        for torch in (True, False) if native_leaf else (False,):
            program = check.lower(None if inputs is None else tuple(inputs), torch)
            try:
                check.native = native_program(
                    program,
                    len(check.names),
                    check.compile_text,
                    builtins=check.builtins,
                    validity=self.validity,
                    witness=witness(check, program) if self.mode == "both" else None,
                )
                return
            except ValueError:
                if not torch:
                    raise

    def _keep(self, objects: Iterable[Any]) -> tuple[Any, ...]:
        dead = self.validity.invalidate
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
