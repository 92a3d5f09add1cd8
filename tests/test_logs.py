"""MINIDYNAMO_LOG and set_logs."""

import logging
import subprocess
import sys

import pytest
import torch

import minidynamo
from minidynamo import logs

PROGRAM = "import torch, minidynamo; minidynamo.optimize('eager')(lambda x: x + 1)(torch.ones(2))"


@pytest.fixture(autouse=True)
def quiet():
    yield
    logs.set_logs()


def lines(caplog, topic, fn, *args):
    with caplog.at_level(logging.INFO, logger=f"minidynamo.{topic}"):
        logs.set_logs(topic)
        logging.getLogger(f"minidynamo.{topic}").propagate = True
        fn(*args)
    return [r.getMessage() for r in caplog.records if r.name == f"minidynamo.{topic}"]


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("guards", "___check_tensors(x"),
        ("graph", "call_function[target=operator.add]"),
        ("bytecode", "return ___graph[0]"),
        ("timing", "translate:"),
    ],
)
def test_topics_of_a_compilation(caplog, topic, expected):
    got = lines(caplog, topic, minidynamo.optimize("eager")(lambda x: x + 1), torch.ones(2))
    assert any(expected in line for line in got), got


def test_breaks_and_skips_share_a_topic(caplog):
    def f(x):
        print("", end="")
        return x + 1

    got = lines(caplog, "breaks", minidynamo.optimize("eager")(f), torch.ones(2))
    assert any("call of print [MD210]" in line for line in got), got


def test_recompiles(caplog):
    f = minidynamo.optimize("eager")(lambda x, n: x + n)
    f(torch.ones(2), 1)
    got = lines(caplog, "recompiles", f, torch.ones(2), 2)
    assert any("n == 1: expected 1, found 2" in line for line in got), got


def test_unknown_topic_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'recompiles'"):
        logs.set_logs("recompile")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "text"), [("breaks,guards", "guards]"), ("guard", "did you mean 'guards'")]
)
def test_environment(value, text):
    env = {"MINIDYNAMO_LOG": value}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**__import__("os").environ, **env},
    )
    assert done.returncode == 0 and text in done.stderr and done.stdout == ""


def test_what_repeats_is_told_once_and_counted(caplog):
    f = minidynamo.optimize("eager")(lambda x, n, m: x + n * m)

    def calls():
        for n in range(6):
            f(torch.ones(2), n, 1)
        f(torch.ones(2), 5, 2)

    got = lines(caplog, "recompiles", calls)
    heads = [line.partition("compiles again")[2] for line in got if "compiles again" in line]
    assert heads == ["", " (2 times)", " (4 times)", ""]
    assert (
        sum("expected" in line for line in got) == 1 + 6
    )  # the first cause, then every entry at the new one


THEIRS = [
    ("recompiles", "recompiles"),
    ("graph_breaks", "breaks"),
    ("guards", "guards"),
    ("graph_code", "graph"),
    ("bytecode", "bytecode"),
]


@pytest.mark.parametrize(("name", "topic"), THEIRS)
def test_names_of_torchs_log_settings(name, topic):
    def calls():
        f = minidynamo.optimize("eager")(lambda x, n: minidynamo.graph_break() or x + n)
        f(torch.ones(2), 1), f(torch.ones(2), 2)

    told = []

    class Kept(logging.Handler):
        def emit(self, record):
            told.append(record.name)

    handler = Kept()
    for each in logs.TOPICS:
        logging.getLogger(f"minidynamo.{each}").addHandler(handler)
    try:
        torch._logging.set_logs(**{name: True})
        calls()
        assert set(told) == {f"minidynamo.{topic}"}
        torch._logging.set_logs()
        minidynamo.reset()
        told.clear()
        calls()
        assert told == []
    finally:
        torch._logging.set_logs()
        logs.follow_torch()
        for each in logs.TOPICS:
            logging.getLogger(f"minidynamo.{each}").removeHandler(handler)


@pytest.mark.slow
def test_torch_logs_of_the_environment():
    text = (
        PROGRAM
        + "; f = minidynamo.optimize('eager')(lambda x, n: x + n); f(torch.ones(2), 1); f(torch.ones(2), 2)"
    )
    env = {**__import__("os").environ, "TORCH_LOGS": "recompiles"}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=env)
    assert "[minidynamo.recompiles]" in done.stderr and "[minidynamo.guards]" not in done.stderr


def test_own_topics_stay_when_torchs_go():
    logs.set_logs("breaks")
    torch._logging.set_logs(graph_breaks=True, guards=True)
    try:
        logs.follow_torch()
        assert set(logs._active) == {"breaks", "guards"}
    finally:
        torch._logging.set_logs()
    logs.follow_torch()
    assert set(logs._active) == {"breaks"}
