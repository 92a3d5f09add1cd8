"""The backend registry."""

import pytest

from minidynamo import list_backends, lookup_backend, register_backend
from minidynamo.backends import registry
from minidynamo.exc import InvalidBackend


@pytest.fixture(autouse=True)
def restored():
    before = dict(registry._REGISTRY)
    yield
    registry._REGISTRY.clear()
    registry._REGISTRY.update(before)


def mine(gm, inputs):
    return gm.forward


def test_register_by_own_name_and_by_another():
    assert register_backend(mine) is mine
    register_backend(name="other")(mine)
    assert lookup_backend("mine").compiler_fn is lookup_backend("other").compiler_fn is mine
    assert {"eager", "debug", "mine", "other"} <= set(list_backends())


def test_a_taken_name_is_refused_but_the_same_backend_is_not():
    register_backend(mine)
    register_backend(mine)
    with pytest.raises(InvalidBackend, match="the name 'mine' is taken"):
        register_backend(lambda gm, inputs: gm, name="mine")


def test_what_is_no_backend():
    with pytest.raises(InvalidBackend, match="takes a callable"):
        register_backend(3)
    with pytest.raises(InvalidBackend, match="pass name="):
        register_backend(type("Anonymous", (), {"__call__": lambda self, gm, i: gm})())
