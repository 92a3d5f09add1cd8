"""Errors are minidynamo's own, and torch._dynamo's of the same name where the program has loaded that."""

import copy
import pickle
import subprocess
import sys

import pytest
import torch
import torch._dynamo

import minidynamo
from minidynamo import exc

JOINED = ("Unsupported", "BackendCompilerFailed", "InvalidBackend", "RecompileError")


@pytest.mark.parametrize("name", JOINED)
def test_is_also_torchs_error(name):
    error = getattr(exc, name)("text")
    assert isinstance(error, getattr(torch._dynamo.exc, name)) and isinstance(error, getattr(exc, name))
    assert (
        str(error) == "text" and type(error).__name__ == name and type(error).__module__ == "minidynamo.exc"
    )


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("again", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_and_pickles(name, again):
    error = again(getattr(exc, name)("text"))
    assert isinstance(error, getattr(exc, name)) and str(error) == "text"


def test_raised_errors_are_caught_by_torchs_names():
    def branch(x):
        return x if x.sum() > 0 else -x

    def no(gm, inputs):
        raise ValueError("no")

    with pytest.raises(torch._dynamo.exc.Unsupported, match="MD201"):
        minidynamo.optimize("eager", nopython=True)(branch)(torch.ones(2))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="ValueError: no"):
        minidynamo.optimize(no)(lambda x: x + 1)(torch.ones(2))
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="nowhere"):
        minidynamo.optimize("nowhere")
    grown = minidynamo.optimize("eager")(lambda x, n: x + n)
    grown(torch.ones(2), 1)
    with (
        minidynamo.config.patch(error_on_recompile=True),
        pytest.raises(torch._dynamo.exc.RecompileError, match="compiled again"),
    ):
        grown(torch.ones(2), 2)


def test_without_torch_dynamo_nothing_is_loaded():
    code = (
        "import sys; from minidynamo.exc import Unsupported as U; e = U('text');"
        "assert type(e) is U and str(e) == 'text' and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
