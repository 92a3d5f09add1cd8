"""What is left to plain Python in the middle of a frame, with capture before and behind it."""

from __future__ import annotations

from tests.eager import check


def test_a_class_is_made_by_plain_python():
    seen = check(
        """
        def f(x):
            y = x + 1
            k = 3
            class A:
                n = k
                def m(self, v): return v * self.n
                def s(self): return __class__
            return A().m(y) * 2, A().s().__name__
        """,
        "f(T(2))",
        "f(T(2))",
    )
    assert (
        seen.reasons == ["MD248"] and seen.graphs == 3
    )  # the second class is another one: its part is compiled again


def test_a_function_that_is_left_out_is_not_traced_by_its_caller():
    seen = check(
        """
        def inner(x): return x * 3
        @minidynamo.disable(recursive=False)
        def mid(x): return inner(x) + 1
        def f(x):
            y = x + 1
            return mid(y) * 2
        """,
        "f(T(2))",
        "f(T(2))",
    )
    assert seen.reasons == ["MD221"] and seen.graphs == 3
    assert [event.where.function for event in seen.compiled] == ["f", "inner", "f"]


def test_what_follows_a_break_in_a_loop_over_a_generator_with_blocks():
    seen = check(
        """
        def items(log):
            try:
                yield 1
                yield 2
            finally:
                log.append("closed")
        def f(x, log):
            y = x + 1
            for i in items(log):
                y = y * i
                minidynamo.graph_break()
            return y - 1, log
        """,
        "f(T(2), [])",
        "f(T(2), [])",
    )
    assert seen.reasons == ["MD239"] and seen.graphs == 1 and "MD306" in seen.skips


def test_exception_groups():
    seen = check(
        """
        def f(x, log, group):
            y = x + 1
            try:
                y = y * 2
                raise group
            except* KeyError as e:
                log.append(len(e.exceptions))
                y = y * 3
            except* ValueError:
                y = y * 5
            return y - 1, log
        """,
        *["f(T(2), [], ExceptionGroup('a', [KeyError(1), ValueError(2)]))"] * 2,
        "f(T(2), [], ExceptionGroup('a', [KeyError(1), OSError(2)]))",
    )
    assert seen.graphs == 1 and "MD306" in seen.skips
