"""The surface of OptimizedFunction: attributes, binding of other callables, copying, pickling, subclassing."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import weakref

import pytest

from minidynamo import _C


def documented(a: int, b: str = "x", *, k: float = 1.0) -> tuple:
    """Says what it is."""
    return (a, b, k)


CTX = _C.OptimizeContext(_C.CompileKey("wrapper"))
documented.note = "kept"
plain_documented = documented
documented = _C.OptimizedFunction(documented, CTX)


class Holder:
    @staticmethod
    def nested():
        return "nested"

    nested = staticmethod(_C.OptimizedFunction(nested.__func__, CTX))


def test_it_forwards_what_a_function_has():
    names = (
        "__code__ __defaults__ __kwdefaults__ __globals__ __closure__ __annotations__ __name__ __qualname__"
    )
    names += " __doc__ __module__ note"
    for name in [*names.split(), *(["__type_params__"] if sys.version_info >= (3, 12) else [])]:
        assert getattr(documented, name) == getattr(plain_documented, name), name
    assert documented.__wrapped__ is plain_documented and documented.ctx is CTX
    assert inspect.signature(documented) == inspect.signature(plain_documented)
    assert inspect.unwrap(documented) is plain_documented
    assert inspect.getdoc(documented) == "Says what it is."
    assert inspect.getsource(documented) == inspect.getsource(plain_documented)
    assert callable(documented) and repr(documented) == f"<optimized {plain_documented!r}>"
    with pytest.raises(AttributeError, match="missing"):
        documented.missing  # noqa: B018


def test_attributes_set_on_it_stay_on_it():
    def f():
        return 1

    optimized = _C.OptimizedFunction(f, CTX)
    optimized.note = 5
    assert optimized.note == 5 and not hasattr(f, "note") and optimized.__dict__ == {"note": 5}

    def other():
        """Other."""

    functools.update_wrapper(optimized, other)
    assert (optimized.__name__, optimized.__doc__, optimized.__wrapped__) == ("other", "Other.", other)
    assert f.__name__ == "f" and optimized() == 1
    del optimized.__name__
    assert optimized.__name__ == "f"
    with pytest.raises(AttributeError):
        optimized.ctx = None


def test_functools_wraps_around_it():
    @functools.wraps(documented)
    def outer(*args, **kwargs):
        return documented(*args, **kwargs)

    assert outer.__name__ == "documented" and outer.__wrapped__ is documented
    assert inspect.signature(outer) == inspect.signature(plain_documented)
    assert outer(1, k=2) == (1, "x", 2)
    assert functools.partial(documented, 1)(k=2) == (1, "x", 2)


def test_pickle_copy_deepcopy():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(documented, protocol)) is documented
        assert pickle.loads(pickle.dumps(Holder.nested, protocol)) is Holder.nested
    assert copy.copy(documented) is documented is copy.deepcopy([documented])[0]
    unnamed = _C.OptimizedFunction(functools.partial(len), CTX)
    assert copy.copy(unnamed) is unnamed is copy.deepcopy(unnamed)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(_C.OptimizedFunction(plain_documented, CTX))


def test_identity_hash_weakref():
    other = _C.OptimizedFunction(plain_documented, CTX)
    assert other != documented and len({other, documented, other}) == 2
    watch = weakref.ref(other)
    del other
    gc.collect()
    assert watch() is None


def test_other_callables_bind_as_they_do():
    class Callable:
        def __call__(self, *args):
            return args

    class Descriptor:
        def __call__(self, *args):
            return ("unbound", *args)

        def __get__(self, instance, owner):
            return lambda *args: (instance, owner, *args)

    class Thing:
        plain = Callable()
        wrapped = _C.OptimizedFunction(Callable(), CTX)
        builtin = _C.OptimizedFunction(len, CTX)
        cls = _C.OptimizedFunction(dict, CTX)
        descriptor = _C.OptimizedFunction(Descriptor(), CTX)
        off = _C.OptimizedFunction(lambda self, x: (self, x), None)

        def method(self, x):
            return (self, x)

    thing = Thing()
    Thing.bound = _C.OptimizedFunction(thing.method, CTX)
    other = Thing()
    assert thing.plain(1) == thing.wrapped(1) == (1,)
    assert thing.builtin("abc") == 3 and thing.cls(a=1) == {"a": 1}
    assert thing.descriptor(1) == (thing, Thing, 1) and Thing.descriptor(1) == (None, Thing, 1)
    assert type(thing.descriptor) is _C.OptimizedFunction and thing.descriptor.ctx is CTX
    assert thing.off(1) == (thing, 1) and repr(Thing.off).startswith("<disabled <function")
    assert other.bound(1) == (thing, 1)
    assert isinstance(Thing.wrapped, _C.OptimizedFunction)


def test_other_callables_run_with_the_context_active():
    class Callable:
        def __call__(self):
            return _C.active(), _C.hook_installed()

    _C.mark_code(Callable.__call__.__code__, _C.SKIP)
    assert _C.OptimizedFunction(Callable(), CTX)() == (CTX, True)
    assert _C.OptimizedFunction(_C.OptimizedFunction(Callable(), None), CTX)() == (None, False)
    assert _C.OptimizedFunction(_C.active, CTX)() is CTX
    assert _C.active() is None


def test_arguments_of_the_constructor():
    for bad in [(), (1,), (len, 1), (len, CTX, 1)]:
        with pytest.raises(TypeError):
            _C.OptimizedFunction(*bad)
    assert _C.OptimizedFunction(fn=len, ctx=CTX).ctx is CTX
    with pytest.raises(TypeError, match="callable"):
        _C.OptimizedFunction(classmethod(len), CTX)


def test_subclasses():
    class Mine(_C.OptimizedFunction):
        def extra(self):
            return self.__wrapped__

    class MineToo(_C.OptimizedCallable):
        pass

    mine = Mine(plain_documented, CTX)
    assert mine(1) == (1, "x", 1.0) and mine.extra() is plain_documented
    assert MineToo(len, CTX)("ab") == 2
    with pytest.raises(TypeError, match="derive it from OptimizedCallable"):
        Mine(len, CTX)

    class Thing:
        method = Mine(lambda self, x: (self, x), CTX)

    thing = Thing()
    assert thing.method(3) == (thing, 3)


def test_it_is_collected_like_a_test():
    """pytest takes it for a test function when its name says so."""
    test_something = _C.OptimizedFunction(lambda: None, CTX)
    assert inspect.isfunction(inspect.unwrap(test_something))
    assert getattr(test_something, "__test__", True) is True


@_C.OptimizedFunction
def test_an_optimized_function_as_test(kit):
    assert kit.C.active() is None
