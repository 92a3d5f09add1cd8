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
