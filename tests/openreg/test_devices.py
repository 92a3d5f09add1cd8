"""The Python API: devices, streams, events, memory, and torch.accelerator over them."""

from __future__ import annotations

import gc
import sys
import threading

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

D = "openreg"


def test_it_is_the_accelerator():
    assert torch.accelerator.current_accelerator() == torch.device(D)
    assert torch.accelerator.is_available() and torch.openreg.is_available()
    assert torch.accelerator.device_count() == torch.openreg.device_count() == 2
    assert torch.openreg.is_initialized() or torch.openreg.init() is None


def test_it_has_the_known_name():
    import torch_openreg
    import torch_openreg.openreg.random as random

    import minidynamo.openreg

    assert torch_openreg.openreg is minidynamo.openreg is torch.openreg
    assert torch_openreg._C is torch.openreg._C
    assert random is sys.modules["minidynamo.openreg.random"]


def test_tensors_modules_and_storages_have_the_methods():
    x = torch.ones(2)
    assert x.openreg().is_openreg and not x.is_openreg
    assert x.openreg(1).device == torch.device("openreg:1")
    assert torch.nn.Linear(2, 2).openreg().weight.is_openreg
    assert x.openreg().storage().is_openreg
    assert x.untyped_storage().openreg().is_openreg


@pytest.mark.parametrize(
    "enter",
    [
        lambda: torch.openreg.device(1),
        lambda: torch.openreg.device("openreg:1"),
        lambda: torch.accelerator.device_index(1),
        lambda: torch.openreg.device_of(torch.ones(1, device="openreg:1")),
        lambda: torch.Stream(device="openreg:1"),
    ],
)
def test_contexts_change_the_current_device(enter):
    with enter():
        assert torch.openreg.current_device() == torch.accelerator.current_device_index() == 1
        assert torch.empty(1, device=D).device.index == 1
    assert torch.openreg.current_device() == 0
    with pytest.raises(KeyError), enter():
        raise KeyError
    assert torch.openreg.current_device() == 0


def test_contexts_that_change_nothing():
    with torch.openreg.device(None), torch.openreg.device_of(torch.ones(1)), torch.openreg.stream(None):
        assert torch.openreg.current_device() == 0


def test_torch_device_contexts_and_default_device():
    with torch.device("openreg:1"):
        assert torch.ones(2).device == torch.device("openreg:1")
    torch.set_default_device(D)
    try:
        assert torch.ones(2).device == torch.device("openreg:0")
    finally:
        torch.set_default_device(None)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.openreg.set_device(2), RuntimeError),
        (lambda: torch.openreg.set_device("cpu"), ValueError),
        (lambda: torch.openreg.set_device(1.5), TypeError),
        (lambda: torch.empty(1, device="openreg:5"), RuntimeError),
        (lambda: torch.ones(1).to("openreg:3"), RuntimeError),
        (lambda: torch.Generator(device="openreg:4"), RuntimeError),
        (lambda: torch.accelerator.set_device_index(2), RuntimeError),
        (lambda: torch.openreg.synchronize(2), RuntimeError),
        (lambda: torch.openreg.memory_allocated(2), RuntimeError),
        (lambda: torch.openreg.device(7).__enter__(), RuntimeError),
        (lambda: torch.openreg.current_stream(3), RuntimeError),
        (lambda: torch.Stream(device="openreg:3"), RuntimeError),
    ],
)
def test_an_index_out_of_range_is_refused(call, error):
    with pytest.raises(error):
        call()
    assert torch.openreg.current_device() == 0
    assert (torch.ones(2, device=D) + 1).tolist() == [2, 2]


def test_a_thread_has_a_current_device_of_its_own():
    seen = []

    def work():
        seen.append(torch.openreg.current_device())
        torch.openreg.set_device(1)
        seen.append(torch.empty(1, device=D).device.index)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0, 1] and torch.openreg.current_device() == 0


def test_properties():
    properties = torch.openreg.get_device_properties(1)
    assert properties.name == torch.openreg.get_device_name("openreg:1") == "simulated device 1"
    assert properties.total_memory == torch.openreg.mem_get_info(1)[1] > 0
    assert torch.float32 in torch.openreg.get_device_capability(0)["supported_dtypes"]


def test_streams():
    stream = torch.Stream(device="openreg:1")
    assert stream.device.index == 1 and stream.stream_id != 0
    assert torch.openreg.default_stream(1).stream_id == 0
    with stream:
        assert torch.openreg.current_stream() == stream
        assert torch.accelerator.current_stream() == stream
    assert torch.openreg.current_stream(1) == torch.openreg.default_stream(1)
    with torch.openreg.stream(stream):
        assert torch.openreg.current_stream() == stream
    torch.openreg.set_stream(stream)
    assert torch.openreg.current_device() == 1
    torch.openreg.set_stream(torch.openreg.default_stream(1))
    assert stream.query() and stream.synchronize() is None
    stream.wait_stream(torch.Stream(D))
    torch.ones(2, device="openreg:1").record_stream(stream)
    torch.openreg.synchronize()


def test_events():
    stream = torch.Stream(device=D)
    event = stream.record_event()
    assert event.query() and event.event_id != 0
    event.synchronize()
    stream.wait_event(event)
    first, second = (torch.Event(D, enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="recorded"):
        first.elapsed_time(second)
    first.record()
    second.record()
    assert 0 < first.elapsed_time(second) < 10_000
    assert second.elapsed_time(first) < 0


def test_memory():
    gc.collect()
    before = torch.openreg.memory_allocated(1)
    x = torch.empty(1000, device="openreg:1")
    assert torch.openreg.memory_allocated(1) == before + 4000 == torch.openreg.memory_reserved(1)
    free, total = torch.openreg.mem_get_info(1)
    assert total - free == before + 4000
    del x
    assert torch.openreg.memory_allocated(1) == before
    assert torch.openreg.max_memory_allocated(1) >= before + 4000
    torch.openreg.reset_peak_memory_stats(1)
    assert torch.openreg.max_memory_allocated(1) == torch.openreg.max_memory_reserved(1) == before
    torch.openreg.reset_accumulated_memory_stats(1)
    stats = torch.openreg.memory_stats(1)
    assert stats["allocated_bytes.all.current"] == before and stats["allocated_bytes.all.allocated"] == 0
    torch.openreg.empty_cache()


def test_memory_that_is_used_up():
    refused = torch.openreg.memory_stats(0)["num_ooms"]
    with pytest.raises(
        torch.OutOfMemoryError, match=r"openreg:0 is out of memory: tried to allocate 4000000000000 bytes"
    ):
        torch.empty(10**12, device=D)
    with pytest.raises(torch.OutOfMemoryError, match="openreg:1"):
        torch.ones(1, device="openreg:1").expand(10**12).contiguous()
    assert torch.openreg.memory_stats(0)["num_ooms"] == refused + 1
    assert (torch.ones(2, device=D) + 1).tolist() == [2, 2]


def test_data_loader_pins_memory():
    loader = DataLoader(TensorDataset(torch.arange(4.0)), batch_size=2, pin_memory=True)
    batches = [x for (x,) in loader]
    assert [x.tolist() for x in batches] == [[0, 1], [2, 3]]
    assert all(x.is_pinned() for x in batches)


def test_dlpack():
    x = torch.randn(2, 3, device="openreg:1")
    y = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert y.device == x.device and y.data_ptr() == x.data_ptr()
