"""Importing the extension: where it is refused, and what happens at the end of the process."""

from __future__ import annotations

import sys

import pytest

SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
source = f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import minidynamo._C
except ImportError as error:
    text = str(error)
    assert text.count(chr(10)) == 0 and "interpreter" in text, text
    print("refused:", text)
else:
    print("imported")
'''
kinds = [(), ("legacy",)] if sys.version_info >= (3, 13) else [()]
for kind in kinds:
    interp = interpreters.create(*kind)
    interpreters.run_string(interp, source)
    interpreters.destroy(interp)
assert C.OptimizedFunction(len)("ab") == 2
"""


def test_sub_interpreters_are_refused_with_one_line(python):
    out = python(SUBINTERPRETER).stdout.splitlines()
    assert len(out) == (2 if sys.version_info >= (3, 13) else 1)
    assert all(line.startswith("refused: ") for line in out), out


def test_importing_it_again_is_the_same_core(python):
    python(
        """
        import sys
        def f(a): return "old"
        def g(a): return "new"
        first = C
        del sys.modules["minidynamo._C"]
        import minidynamo._C as C
        assert C is not first and C.OptimizedFunction is first.OptimizedFunction and C.RERUN is first.RERUN
        C.mark_code(f.__code__, C.SKIP)
        assert first.get_mark(f.__code__) == first.SKIP
        """
    )


@pytest.mark.parametrize("how", ["context left active", "finalizer", "thread"])
def test_the_end_of_the_process(python, how):
    """Optimized functions called while modules are torn down run plain; nothing crashes."""
    done = python(
        f"""
        import sys, threading, time
        how = {how!r}
        """
        """
        def convert(ctx, code, *rest):
            print("compiled", code.co_name)
            return None
        C.set_convert_frame(convert)
        ctx = C.OptimizeContext(C.CompileKey("b"))
        def f(): return 1
        optimized = C.OptimizedFunction(f, ctx)
        class Late:
            def __init__(self, fn): self.fn = fn
            def __del__(self): assert self.fn() == 1
        late = Late(optimized)
        sys.late = late
        optimized()
        if how == "context left active":
            C.mark_code(Late.__del__.__code__, C.SKIP)
            C.swap_active(ctx)
        elif how == "thread":
            def work():
                C.swap_active(ctx)
                while True: f()
            threading.Thread(target=work, daemon=True).start()
            time.sleep(0.05)
        """,
        PYTHONMALLOC="debug",
    )
    assert done.stdout.splitlines()[0] == "compiled f"
    assert "Error" not in done.stderr


def test_what_is_there():
    from minidynamo import _C

    names = """CompileKey OptimizeContext OptimizedFunction OptimizedCallable ResumeFunction EntryHandle Keyed Validity
        CacheEntry GuardProgram set_convert_frame set_rerun_callback mark_code get_mark add_entry cache_entries
        reset_code reset_all active
        swap_active hook_installed force_eager stats type_lookup is_subtype instance_dict
        SKIP SKIP_SUBTREE NO_COMPILE TRANSFORMED FRUITLESS_LIMIT RERUN"""
    assert {n for n in dir(_C) if not n.startswith("__")} == set(names.split())
    assert all(getattr(_C, n).__doc__ for n in names.split() if n != "RERUN" and callable(getattr(_C, n)))
