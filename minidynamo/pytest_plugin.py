"""pytest: `@pytest.mark.minidynamo(max_recompiles=0, max_graph_breaks=0)` and the fixture `compile_log`.

Imports neither torch nor the native extension: a test session that uses neither mark nor fixture pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from minidynamo.recording.session import Recording

LIMITS = ("max_recompiles", "max_graph_breaks", "max_compiles")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line(
        "markers",
        "minidynamo(max_recompiles=None, max_graph_breaks=None, max_compiles=None): the test fails when it compiles more often, "
        "or breaks graphs at more places",
    )


def limits_of(item: pytest.Item) -> dict[str, int]:
    """The limits that the item's marks set, the closest mark first. Raises pytest.UsageError for an unknown one."""
    found: dict[str, int] = {}
    for mark in item.iter_markers("minidynamo"):
        if mark.args:
            raise pytest.UsageError(
                f"{item.nodeid}: @pytest.mark.minidynamo takes keywords only: {', '.join(LIMITS)}"
            )
        for name, value in mark.kwargs.items():
            if name not in LIMITS or type(value) is not int:
                raise pytest.UsageError(
                    f"{item.nodeid}: @pytest.mark.minidynamo({name}={value!r}): it takes {', '.join(LIMITS)}, each an int"
                )
            found.setdefault(name, value)
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Record the test and fail it when a limit is passed. A test that fails by itself keeps its own error."""
    limits = limits_of(item)
    if not limits:
        return (yield)  # type: ignore[return-value]
    from minidynamo.recording.session import record

    with record() as log:
        result = yield
    told = exceeded(log, limits)
    if told:
        pytest.fail("\n".join(told), pytrace=False)
    return result


def exceeded(log: Recording, limits: dict[str, int]) -> list[str]:
    """What is more than allowed, with its causes."""
    from minidynamo.recording.session import told_breaks, told_recompiles

    out: list[str] = []
    if log.recompile_count > limits.get("max_recompiles", log.recompile_count):
        out += told_recompiles(log)
    if len(log.graph_breaks) > limits.get("max_graph_breaks", len(log.graph_breaks)):
        out += told_breaks(log)
    if log.compiles > limits.get("max_compiles", log.compiles):
        out.append(f"{log.compiles} compilations, at most {limits['max_compiles']} are allowed")
    return out


@pytest.fixture
def compile_log() -> Iterator[Any]:
    """What is compiled in the test: `recompiles`, `graph_breaks`, `compiles`, `to_json()`, ..."""
    from minidynamo.recording.session import record

    with record() as log:
        yield log
