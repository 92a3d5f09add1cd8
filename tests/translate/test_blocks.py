"""Graph breaks inside try and with blocks: the broken operation runs under the frame's own handlers, and the frame is captured again
behind it, or from the handler on."""

from __future__ import annotations

import sys
import traceback

import pytest
import torch

import minidynamo
from tests.eager import T, check, watching

MANAGER = """
import sys
class Manager:
    def __init__(self, log=None): self.log = [] if log is None else log
    def __enter__(self): self.log.append("in"); return self
    def __exit__(self, kind, error, trace):
        self.log.append((kind, trace is None, sys.exc_info()[0] if kind else None)); return kind is KeyError
def g(n): return 6 // n
"""
# Each begins with its name, the codes of its breaks when n is 0 ("any": whatever they are), and the number of graphs of f.
PROGRAMS = r"""
# print in try: MD210: 2
def f(x, n, log):
    try:
        y = x + 1
        print('in')
        y = y * 2
    finally:
        log.append(1)
    return y + 1

# print in except: MD238 MD210: 2
def f(x, n, log):
    y = x + 1
    try:
        y = y + g(n)
    except ZeroDivisionError as e:
        print(e)
        y = y * 2
    return y + 1

# print in finally: MD210: 2
def f(x, n, log):
    try:
        y = x + 1
    finally:
        print('in')
        x = x * 2
    return y + x

# print in with: MD210: 2
def f(x, n, log):
    with Manager(log) as m:
        y = x + 1
        print(len(m.log))
        y = y * 2
    return y + 1

# branch in try: MD201: 2
def f(x, n, log):
    try:
        y = x + 1
        if y.sum() > 0:
            y = y * 2
    except KeyError:
        y = x
    return y

# branch in with: MD201: 2
def f(x, n, log):
    with Manager(log):
        y = x + 1
        y = y * 2 if y.sum() > 0 else y - 1
    return y + 1

# assert in try: MD201: 2
def f(x, n, log):
    y = x + 1
    try:
        assert y.sum() < 0, 'negative'
        y = y * 2
    except AssertionError as e:
        log.append(str(e))
    return y * 3

# loop in try: MD210 MD230 MD210 MD230: 3
def f(x, n, log):
    y = x + 1
    try:
        for i in iter([1, 2]):
            y = y * i
            print(i)
    finally:
        y = y + 1
    return y

# raised at once behind a branch: MD201 MD238: 2
def f(x, n, log):
    y = x + 1
    try:
        if y.sum() > 0:
            raise KeyError(n)
        y = y * 2
    except KeyError as e:
        log.append(e)
        y = y * 3
    return y + 1

# comprehension in try: any: 2
def f(x, n, log):
    y = x + 1
    try:
        l = [print(i) for i in range(2)]
        y = y * len(l)
    finally:
        log.append(1)
    return y

# kept exception: MD238: 2
def f(x, n, log):
    y = x + 1
    try:
        raise IndexError(n)
    except IndexError as e:
        log.append(e)
        y = y * 2
    return y + 1

# the manager swallows: any: 3
def f(x, n, log):
    y = x + 1
    with Manager(log):
        print('a')
        y = y * 2
        {}[n]
    return y + 1

# nested: any: 3
def f(x, n, log):
    try:
        with Manager(log):
            try:
                y = x + 1
                print('a')
                y = y / g(n)
            finally:
                y = y * 2
    except ZeroDivisionError:
        y = y - 1
    return y * 3

# no_grad: MD210: 2
def f(x, n, log):
    with torch.no_grad():
        y = x + 1
        print(torch.is_grad_enabled())
        y = y * 2
    return y + x

# write in no_grad: MD210: 2
def f(x, n, log):
    y = x * 2
    with torch.no_grad():
        print('a')
        y = torch.dropout(y, 0.5, True)
        y.add_(1)
    return y + x

# attributes of the exception: MD220: 2
def f(x, n, log):
    y = x + 1
    try:
        open('/no/such/file')
    except OSError as e:
        y = y * e.errno
        log.append(e.filename)
    return y

# raised again: MD220: 2
def f(x, n, log):
    y = x + 1
    try:
        try:
            open('/no/such/file')
        except OSError:
            y = y * 2
            raise
    except OSError:
        y = y * 3
    return y
"""


@pytest.mark.parametrize("program", PROGRAMS.split("\n# ")[1:], ids=lambda program: program.partition(":")[0])
def test_the_frame_is_captured_behind_a_break(program):
    head, _, body = program.partition("\n")
    _, codes, graphs = head.split(": ")
    seen = check(MANAGER + body, "f(T(3), 0, [])")
    assert codes in ("any", " ".join(seen.reasons))
    assert sum(event.ops > 0 and event.where.function == "f" for event in seen.compiled) == int(graphs)
    check(
        MANAGER + body, *["f(T(3), 0, [])", "f(T(3), 2, [])"] * 2, "f(T(4, requires_grad=True), 0, ['old'])"
    )


class Lock:
    def __init__(self) -> None:
        self.held = False
        self.left_with: object = None

    def __enter__(self) -> None:
        self.held = True

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.held = False
        self.left_with = kind


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_while_the_graph_runs_releases_what_was_taken(error):
    lock, stop = Lock(), []

    def backend(module, inputs):
        def run(*values):
            made = module.forward(*values)
            if stop and len(module.graph.nodes) > 4:
                raise error
            return made

        return run

    @minidynamo.optimize(backend)
    def f(x, k):
        found = []
        try:
            with lock:
                found.append(lock.held)
                minidynamo.graph_break()
                return x * k + 1 - 2, found
        finally:
            found.append("left")

    f(T(2), 3)
    assert not lock.held and lock.left_with is None
    stop.append(True)
    with pytest.raises(error) as caught:
        f(T(2), 3)
    assert not lock.held and lock.left_with is error
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[1:] == ["f", "run"]
    stop.clear()
    assert f(T(2), 3)[1] == [True, "left"]


@pytest.mark.parametrize("exit_is_in_the_graph", [False, True])
def test_the_grad_mode_is_eagers_when_a_graph_that_draws_random_numbers_fails(exit_is_in_the_graph):
    @minidynamo.optimize("eager")
    def f(x, k):
        with torch.no_grad():
            y = x * 2
            minidynamo.graph_break()
            z = torch.dropout(y, 0.5, True)
            if not exit_is_in_the_graph:
                return z[k]
        w = torch.dropout(x, 0.5, True) + z
        return w[k]

    with watching() as seen:
        f(T(3, requires_grad=True), torch.tensor([1]))
    assert seen.graphs == 2
    for _ in range(2):
        with pytest.raises(IndexError):
            f(T(3, requires_grad=True), torch.tensor([7]))
        assert torch.is_grad_enabled()


def test_a_manager_of_the_grad_mode_that_was_entered_outside_of_the_trace():
    source = """
    def f(x, m, outer):
        m.__enter__()
        y = x * 2
        print(y.requires_grad)
        z = x * 3
        m.__exit__(None, None, None)
        return y.requires_grad, z.requires_grad, (x * 2).requires_grad, m.prev
    """
    for manager in ("torch.no_grad()", "torch.enable_grad()", "torch.set_grad_enabled(True)"):
        check(source, *[f"f(T(2, requires_grad=True), {manager}, 0)"] * 2)


def test_the_exception_outside_is_handled_again_behind_a_handler():
    @minidynamo.optimize("eager")
    def f(x):
        y = x + 1
        try:
            {}["k"]
        except KeyError as e:
            minidynamo.graph_break()
            context = e.__context__
            y = y * 2
        minidynamo.graph_break()
        return y, context, sys.exc_info()[1]

    try:
        raise OSError("outside")
    except OSError as outside:
        for _ in range(2):
            _, context, handled = f(T(2))
            assert context is outside and handled is outside
            assert sys.exc_info()[1] is outside
    assert f(T(2))[1:] == (None, None)


def test_an_exception_dies_with_its_handler():
    """Nothing keeps it, nor the frames in its traceback, behind the block."""

    class Mark:
        def __del__(self):
            order.append("dead")

    def fails():
        mark = Mark()
        order.append("raise")
        raise ValueError(id(mark))

    def f(x):
        y = x + 1
        try:
            minidynamo.graph_break()
            fails()
        except ValueError:
            y = y * 2
            order.append("handled")
        minidynamo.graph_break()
        order.append("behind")
        return y

    order: list[str] = []
    f(T(2))
    expected, order = order, []
    g = minidynamo.optimize("eager")(f)
    g(T(2))
    g(T(2))
    assert expected == ["raise", "handled", "dead", "behind"] and order == expected * 2


def test_an_object_that_acts_when_it_dies_dies_where_it_is_deleted():
    source = """
    def f(x):
        y = x + 1
        with torch._C.DisableTorchFunctionSubclass():
            g = torch._C._EnableTorchFunction()
            print(torch._C._is_torch_function_enabled())
            del g
            y = y * 2
            print(torch._C._is_torch_function_enabled())
        return y, torch._C._is_torch_function_enabled()
    """
    check(source, "f(T(2))", "f(T(2))")
    assert torch._C._is_torch_function_enabled()


def test_an_attribute_of_the_instance_is_no_special_method():
    source = """
    class Manager:
        def __enter__(self): return self
        def __exit__(self, *details): print("class", details[0])
    outside = Manager()
    outside.__exit__ = lambda *details: print("instance")
    def f(x, made):
        manager = Manager() if made else outside
        if made:
            manager.__exit__ = lambda *details: print("instance")
        y = x + 1
        with manager:
            y = y * 2
            print("in")
            y = y + 1
        return y
    """
    check(source, *["f(T(2), True)", "f(T(2), False)"] * 2)


def test_an_assignment_that_slots_refuse_raises_where_it_stands():
    source = """
    class Slotted:
        __slots__ = ("a",)
    def f(x, s):
        n = 0
        try:
            s.__weakref__ = None
        except AttributeError:
            n += 1
        try:
            s.b = 3
        except AttributeError as e:
            n += 10
            print(e)
        s.a = 4
        return x + n, s.a
    """
    check(source, *["f(T(2), Slotted())"] * 2)
