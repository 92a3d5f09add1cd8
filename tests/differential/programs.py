"""Random programs of the captured language and its edges, as source text.

Every program defines `f(x, y, n, l, o, d)` over two tensors of shape (2, 3), an int, a list of tensors, an object and a dict, and
ends. Programs may raise: indexes out of range, division by zero, unbound names are part of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hypothesis import strategies as st

HEADER = """
import contextlib
import sys
import torch

class Box:
    label = 2
    def __init__(self, a=1):
        self.a = a
        self.log = []
    @property
    def twice(self):
        return self.a * 2
    def step(self, v, by=1):
        self.a += by
        self.log.append(self.a)
        return v * self.a
    def __add__(self, other):
        return Box(self.a + (other.a if isinstance(other, Box) else other))
    __radd__ = __add__
    def __getitem__(self, key):
        return self.log[key]
    def __len__(self):
        return len(self.log)
    def __call__(self, v):
        return v + self.a
    def __enter__(self):
        self.a += 1
        return self
    def __exit__(self, kind, value, trace):
        self.log.append(kind is None)
        return kind is ZeroDivisionError

class Sub(Box):
    def step(self, v, by=2):
        return super().step(v, by) - 1

def gen(v, n):
    for i in range(n):
        yield v + i

@contextlib.contextmanager
def noting(name):
    print("in", name)
    try:
        yield len(name)
    except IndexError as e:
        print("seen", repr(e))
    finally:
        print("out", name, sys.exc_info()[0])

total = 0
scale = 2
seen = []

def helper(a, b=2, *rest, c=1):
    if b > 2:
        a = a * b
    return a + c + len(rest)

def noisy(a):
    print("noisy")
    return a - 1

def fails(n):
    return 6 // n
"""
CALLS = (
    "f(T(2, 3), T(2, 3) - 3, 2, [T(2, 3), T(2, 3) * 2], o, {'a': 1, 'b': 2})",
    "f(T(2, 3) - 4, T(2, 3), 0, [T(2, 3)], Sub(3), {'b': 2, 'a': 0})",
    "(lambda t, d: (f(t, t, 3, [t, t], o, d), t, d, o))(T(2, 3), {})",
    "f(T(2, 3), T(2, 3) - 3, 2, [T(2, 3), T(2, 3) * 2], o, {'a': 1, 'b': 2})",
)


class Writer:
    """Writes one program. `names` are the variables in scope by kind; they may be unbound where a branch was not taken."""

    def __init__(self, draw: Callable[[st.SearchStrategy], object]) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.indent = 1
        self.fresh = 0
        self.names: dict[str, list[str]] = {
            "tensor": ["x", "y"],
            "int": ["n"],
            "list": ["l"],
            "fn": [],
            "object": ["o"],
            "dict": ["d"],
        }
        self.budget = 14
        self.in_loop = 0
        self.depth = 0

    # --- choices ----------------------------------------------------------------------------------------------------
    def pick(self, *options: str) -> str:
        return str(self.draw(st.sampled_from(options)))

    def number(self, low: int, high: int) -> int:
        return int(str(self.draw(st.integers(low, high))))

    def some(self, kind: str) -> str:
        return self.pick(*self.names[kind])

    def new(self, kind: str) -> str:
        self.fresh += 1
        name = f"{kind[0]}{self.fresh}"
        self.names[kind].append(name)
        return name

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    # --- expressions ------------------------------------------------------------------------------------------------
    def integer(self, depth: int = 2) -> str:
        options: list[Callable[[], str]] = [
            lambda: self.some("int"),
            lambda: str(self.number(-2, 4)),
            lambda: f"{self.some('tensor')}.shape[{self.pick('0', '-1', '0', '1')}]",
            lambda: f"len({self.some('list')})",
            lambda: f"o.a if {self.condition(0)} else {self.some('int')}",
            lambda: self.pick("scale", "total", "True", "o.a", "(n := n + 1)"),
            lambda: f"{self.some('object')}.{self.pick('a', 'a', 'label', 'twice', 'missing')}",
            lambda: f"{self.some('dict')}.get({self.key()}, {self.number(0, 3)})",
            lambda: (
                f"{self.pick('len', 'sum')}({self.some('dict')}.{self.pick('values', 'values', 'keys')}())"
            ),
        ]
        if depth:
            options += [
                lambda: (
                    f"({self.integer(depth - 1)} {self.pick('+', '-', '*', '//', '%')} {self.pick('2', '3', self.integer(depth - 1))})"
                ),
                lambda: f"{self.pick('min', 'max')}({self.integer(depth - 1)}, {self.integer(depth - 1)})",
                lambda: f"fails({self.pick('2', '3', self.integer(depth - 1))})",
                lambda: f"(lambda v, w=2: v * w + {self.some('int')})({self.integer(depth - 1)})",
                lambda: f"sum([i * {self.some('int')} for i in range({self.number(0, 3)})])",
            ]
        return self.choose(options)

    def tensor(self, depth: int = 2) -> str:
        options: list[Callable[[], str]] = [
            lambda: self.some("tensor"),
            lambda: f"{self.some('list')}[{self.pick('0', '0', '-1', '0', '-1', '1', '-2')}]",
            lambda: self.pick("torch.ones(2, 3)", "torch.rand(2, 3)", "torch.zeros_like(x)", "x.new_ones(3)"),
        ]
        if depth:
            operand = self.tensor_or_number(depth - 1)
            options += [
                lambda: f"({self.tensor(depth - 1)} {self.pick('+', '-', '*', '/')} {operand})",
                lambda: f"({operand} {self.pick('+', '-', '*')} {self.tensor(depth - 1)})",
                lambda: f"torch.{self.pick('abs', 'sin', 'relu', 'neg')}({self.tensor(depth - 1)})",
                lambda: (
                    f"{self.tensor(depth - 1)}.{self.pick('sum()', 'clone()', 't().t()', 'mean(0)', 'detach()')}"
                ),
                lambda: f"{self.tensor(depth - 1)}[{self.pick('0', '-1', ':1', '..., 0', '0', '2')}]",
                lambda: f"helper({self.tensor(depth - 1)}, {self.pick('', 'c=3', 'b=n', '3, 4, 5')})",
                lambda: f"noisy({self.tensor(depth - 1)})",
                lambda: f"torch.where({self.some('tensor')} > 0, {self.tensor(depth - 1)}, 0.0)",
                lambda: f"({self.tensor(depth - 1)} if {self.condition(1)} else {self.tensor(depth - 1)})",
                lambda: f"sum({self.sequence(depth - 1)}, {self.some('tensor')})",
            ]
            options += [
                lambda: (
                    f"{self.some('object')}.step({self.tensor(depth - 1)}{self.pick('', ', 3', ', by=n')})"
                ),
                lambda: f"{self.some('object')}({self.tensor(depth - 1)})",
                lambda: f"sum(gen({self.tensor(depth - 1)}, {self.pick('2', 'n')}), {self.some('tensor')})",
                lambda: f"next(v * 2 for v in {self.some('list')})",
                lambda: f"({self.tensor(depth - 1)} + {self.some('dict')}[{self.key()}])",
            ]
            if self.names["fn"]:
                options.append(lambda: f"{self.some('fn')}({self.tensor(depth - 1)})")
        return self.choose(options)

    def tensor_or_number(self, depth: int) -> str:
        return self.tensor(depth) if self.number(0, 1) else self.pick("2", "0.5", self.some("int"))

    def sequence(self, depth: int = 1) -> str:
        options: list[Callable[[], str]] = [
            lambda: self.some("list"),
            lambda: f"[{self.tensor(depth)}, {self.some('tensor')}]",
            lambda: f"{self.some('list')}[{self.pick('1:', ':1', '::-1', ':')}]",
            lambda: f"[v * i for i, v in enumerate({self.some('list')}, {self.number(0, 2)})]",
            lambda: (
                f"[a + b for a, b in zip({self.some('list')}, {self.some('list')}) if {self.condition(0)}]"
            ),
            lambda: f"{self.some('list')} + [{self.some('tensor')}]",
            lambda: f"list(map(lambda v: v + {self.some('int')}, {self.some('list')}))",
        ]
        return self.choose(options)

    def key(self) -> str:
        return self.pick('"a"', '"b"', '"a"', '"c"')

    def condition(self, depth: int = 1) -> str:
        options: list[Callable[[], str]] = [
            lambda: f"{self.some('int')} {self.pick('<', '==', '!=', '>=')} {self.number(0, 3)}",
            lambda: f"{self.some('tensor')} is {self.some('tensor')}",
            lambda: f"isinstance({self.some('int')}, int)",
            lambda: f"{self.key()} in {self.some('dict')}",
            lambda: f"{self.some('object')} is {self.some('object')}",
            lambda: self.some("object"),
        ]
        if depth:
            options += [
                lambda: f"{self.some('tensor')}.sum() {self.pick('<', '>')} {self.number(-3, 8)}",
                lambda: f"not ({self.condition(0)})",
                lambda: f"{self.condition(0)} {self.pick('and', 'or')} {self.condition(0)}",
                lambda: f"{self.some('tensor')}.any()",
            ]
        return self.choose(options)

    def choose(self, options: list[Callable[[], str]]) -> str:
        return options[self.number(0, len(options) - 1)]()

    # --- statements ---------------------------------------------------------------------------------------------------
    def block(self, most: int) -> None:
        self.depth += 1
        self.indent += 1
        before = len(self.lines)
        for _ in range(self.number(1, most)):
            self.statement()
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1
        self.depth -= 1

    def statement(self) -> None:
        if self.budget <= 0:
            return
        self.budget -= 1
        kinds = list(STATEMENTS) if self.depth < 3 else list(STATEMENTS[:SIMPLE])
        kinds[self.number(0, len(kinds) - 1)](self)

    def assign(self) -> None:
        value = self.tensor()
        self.line(f"{self.new('tensor')} = {value}")

    def assign_int(self) -> None:
        value = self.integer()
        self.line(f"{self.new('int') if self.number(0, 2) else self.some('int')} = {value}")

    def assign_list(self) -> None:
        value = self.sequence()
        self.line(f"{self.new('list')} = {value}")

    def update(self) -> None:
        """In place. The operand shares no memory with the target: a graph that writes into its inputs and then fails cannot be run again
        in plain Python, so its error has the graph's line (a documented limit)."""
        operand = self.pick("2", "0.5", self.some("int"), f"{self.some('tensor')}.clone()")
        self.line(f"{self.some('tensor')} {self.pick('+=', '*=', '-=')} {operand}")

    def show(self) -> None:
        value = self.pick(self.some("int"), self.some("tensor"), '"text"', f'f"{{{self.some("int")}:03d}}"')
        self.line(f"print({value})")

    def store(self) -> None:
        thing, mapping = self.some("object"), self.some("dict")
        target = self.pick(
            f"{thing}.a",
            f"{self.some('list')}[{self.number(-1, 1)}]",
            "total",
            f"{thing}.b",
            "x[0]",
            f"{mapping}[{self.key()}]",
        )
        value = self.tensor(1) if target[0] in "xl" or target.endswith(".b") else self.integer(1)
        self.line(f"{target} = {value}")

    def change_list(self) -> None:
        name, value = self.some("list"), self.tensor(1)
        self.line(
            self.pick(
                f"{name}.append({value})",
                f"{name}.insert(0, {value})",
                f"{name} += [{value}]",
                f"{name}.pop()",
                f"seen.append({self.some('int')})",
                f"{name}.reverse()",
            )
        )

    def change_dict(self) -> None:
        name = self.some("dict")
        self.line(
            self.pick(
                f"{name}.update(c={self.integer(1)})",
                f"{name}.pop({self.key()}, None)",
                f"del {name}[{self.key()}]",
                f"{name}.setdefault({self.key()}, {self.integer(1)})",
                f"{self.new('dict')} = {{**{name}, 'b': {self.integer(1)}}}",
                f"{name}.clear()",
            )
        )

    def make(self) -> None:
        value = self.pick(
            f"Box({self.integer(1)})", f"Sub({self.integer(1)})", f"{self.some('object')} + {self.integer(1)}"
        )
        self.line(f"{self.new('object')} = {value}")

    def unpack(self) -> None:
        a, b = self.new("tensor"), self.new("tensor")
        self.line(
            self.pick(
                f"{a}, {b} = {self.some('tensor')}", f"{a}, *{b} = {self.some('list')}", f"{a}, {b} = y, x"
            )
        )

    def forget(self) -> None:
        name = self.some("tensor")
        self.line(f"del {name}")
        if self.number(0, 3):
            self.line(f"{name} = {self.pick('torch.ones(2, 3)', 'l[0]')}")

    def leave(self) -> None:
        keyword = self.pick("break", "continue") if self.in_loop else f"return {self.tensor(1)}"
        self.line(f"if {self.condition()}:")
        self.line(f"    {keyword}")

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        self.block(3)
        if self.number(0, 1):
            self.line("else:")
            self.block(3)

    def loop(self) -> None:
        kind = self.number(0, 4)
        if kind == 4:
            self.line(f"for k, {self.new('int')} in {self.some('dict')}.items():")
        elif kind == 3:
            self.line(f"for {self.new('tensor')} in gen({self.tensor(1)}, {self.number(0, 2)}):")
        elif kind == 0:
            self.line(f"for {self.new('int')} in range({self.number(0, 3)}):")
        elif kind == 1:
            self.line(f"for {self.new('tensor')} in {self.some('list')}[:3]:")
        else:
            name = self.new("int")
            self.line(f"{name} = 0")
            self.line(f"while {name} < {self.number(1, 3)}:")
            self.line(f"    {name} += 1")
        self.in_loop += 1
        self.block(3)
        self.in_loop -= 1

    def attempt(self) -> None:
        """try with all its clauses; handlers and finally have blocks of their own."""
        clauses = self.number(0, 3)  # bit 0: no handler but finally; else bit 1: a second handler
        self.line("try:")
        self.block(2)
        if clauses != 1:
            self.handler("(ZeroDivisionError, IndexError, KeyError)")
            if clauses == 2:
                self.handler("Exception")
            if self.number(0, 1):
                self.line("else:")
                self.block(1)
        if clauses == 1 or not self.number(0, 2):
            self.line("finally:")
            self.block(2)

    def handler(self, classes: str) -> None:
        self.line(f"except {classes} as e:")
        look = self.pick(
            "print(type(e).__name__, sys.exc_info()[1] is e)",
            "print(e)",
            "print(type(e.__context__).__name__)",
            "pass",
            "n = len(e.args)",
        )
        self.line(f"    {look}")
        self.block(2)
        end = self.pick("", "", "", "raise", "raise KeyError(2)", "raise ValueError from e")
        if end:
            self.line(f"    {end}")

    def manage(self) -> None:
        manager = self.pick(
            f"{self.some('object')} as {self.new('object')}",
            self.some("object"),
            "torch.no_grad()",
            f"noting('abc') as {self.new('int')}",
            "contextlib.suppress(ZeroDivisionError)",
            f"noting('x'), {self.some('object')}",
        )
        self.line(f"with {manager}:")
        self.block(2)

    def fail(self) -> None:
        self.line(f"if {self.condition(0)}:")
        self.line(f"    raise {self.pick('ZeroDivisionError(n)', 'ValueError', 'KeyError(1) from None')}")

    def function(self) -> None:
        """An inner function over variables of the outer one, which may change them."""
        outer, self.in_loop = self.in_loop, 0
        name, counter = self.new("fn"), self.new("int")
        self.line(f"{counter} = {self.number(0, 3)}")
        changes = self.number(0, 1)
        self.line(f"def {name}(v, w={self.some('int')}):")
        if changes:
            self.line(f"    nonlocal {counter}")
            self.line(f"    {counter} += 1")
        self.line(f"    return v * w + {counter} + {self.some('tensor')}")
        self.in_loop = outer

    def program(self) -> str:
        for _ in range(self.number(3, 7)):
            self.statement()
        shown = [*self.names["tensor"][:2], *self.names["int"][:1]]
        self.line(
            f"return {self.tensor(1)}, {', '.join(shown)}, {self.some('list')}, {self.some('object')}, d"
        )
        body = "\n".join(self.lines)
        return f"{HEADER}\no = Box()\n\ndef f(x, y, n, l, o, d):\n    global total\n{body}\n"


STATEMENTS: tuple[Callable[[Writer], None], ...] = (
    Writer.assign,
    Writer.assign_int,
    Writer.assign_list,
    Writer.update,
    Writer.show,
    Writer.store,
    Writer.change_list,
    Writer.change_dict,
    Writer.make,
    Writer.unpack,
    Writer.forget,
    Writer.leave,
    Writer.branch,
    Writer.loop,
    Writer.attempt,
    Writer.manage,
    Writer.fail,
    Writer.function,
)
SIMPLE = 12  # the first ones hold no block of their own


@st.composite
def programs(draw: Callable[[st.SearchStrategy], object]) -> str:
    """The source of a program."""
    return Writer(draw).program()


def numbered(source: str) -> Iterator[str]:
    """Lines with their numbers, for messages."""
    for number, line in enumerate(source.splitlines(), 1):
        yield f"{number:3} {line}"
