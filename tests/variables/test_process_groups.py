"""What programs ask of torch.distributed: whether it is initialized, rank and world size are constants, guarded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist

import minidynamo
from minidynamo.exc import Unsupported

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="torch was built without torch.distributed")


@contextmanager
def group(rank: int, size: int) -> Iterator[None]:
    """A default process group that talks to nobody."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=size)
    try:
        yield
    finally:
        dist.destroy_process_group()


def scaled(x):
    if not dist.is_available() or not dist.is_initialized():
        return x
    return x * dist.get_world_size() + dist.get_rank()


def scaled_by(x, group):
    same = group is dist.group.WORLD
    return x * group.size() + group.rank() + dist.get_world_size(group) + same


def backend_of(x, group):
    return x + len(group.name())


@pytest.mark.filterwarnings("error")
def test_initialized_rank_and_size_are_guarded():
    fn = minidynamo.optimize("eager", nopython=True)(scaled)
    x = torch.ones(2)
    for _ in range(2):
        assert torch.equal(fn(x), x)
        for rank, size in ((0, 2), (1, 3)):
            with group(rank, size):
                assert torch.equal(fn(x), scaled(x))
                assert torch.equal(fn(x), scaled(x))


def test_groups_as_arguments():
    fn = minidynamo.optimize("eager", nopython=True)(scaled_by)
    x = torch.ones(2)
    with group(1, 4):
        other = dist.new_group([1, 2])
        for each in (dist.group.WORLD, other, dist.group.WORLD):
            assert torch.equal(fn(x, each), scaled_by(x, each))
        assert len(minidynamo.cache_entries(fn)) == 2


def test_what_else_a_group_does_breaks_the_graph():
    with group(0, 1):
        with pytest.raises(Unsupported):
            minidynamo.optimize("eager", nopython=True)(backend_of)(torch.ones(2), dist.group.WORLD)
        fn = minidynamo.optimize("eager")(backend_of)
        assert torch.equal(fn(torch.ones(2), dist.group.WORLD), backend_of(torch.ones(2), dist.group.WORLD))


def test_batch_norm_that_would_synchronize():
    torch.manual_seed(0)
    layer = torch.nn.SyncBatchNorm(3)
    x = torch.randn(2, 3, 4, 4)
    again = torch.nn.SyncBatchNorm(3)
    fn = minidynamo.optimize("eager", nopython=True)(layer)
    assert torch.equal(fn(x), again(x))
    assert torch.equal(layer.running_mean, again.running_mean)
