"""Operators on the device equal the CPU's."""

from __future__ import annotations

import pytest
import torch

from tests.openreg.op_sweep import difference, full_name, operators, summary, sweep

D = "openreg"
# Operators of torch's database that differ, with the reason.
KNOWN = {
    "sparse.mm.reduce": "the device has no sparse layouts",
    "sparse.sampled_addmm": "the device has no sparse layouts",
    "to_sparse": "the device has no sparse layouts",
}
# Both refuse every sample with the same error ("Jiterator is only supported on CUDA and ROCm GPUs").
NOT_ON_THE_CPU = {
    "jiterator_2inputs_2outputs",
    "jiterator_4inputs_with_extra_args",
    "jiterator_binary",
    "jiterator_binary_return_by_ref",
    "jiterator_unary",
}
AT_LEAST = 669  # with equal results, of 677


def test_factories_views_and_writes():
    a = torch.arange(6, device=D).view(2, 3).float()
    a[:, 1:].add_(1)
    assert a.tolist() == [[0, 2, 3], [3, 5, 6]]
    assert (a.t() @ a)[0, 0].item() == 9
    assert a.unfold(1, 2, 1).shape == (2, 2, 2) and a.expand(4, 2, 3).shape == (4, 2, 3)
    assert a[a > 3].tolist() == [5, 6] and a.nonzero().shape == (5, 2)
    assert "device='openreg:0'" in repr(a)
    assert a.cpu().numpy().shape == (2, 3)


def test_results_are_on_the_device_of_the_arguments():
    x = torch.ones(2, device="openreg:1")
    for y in (
        x + 1,
        x.sum(),
        x.view(2, 1),
        x.sort()[1],
        torch.stack([x, x]),
        torch.zeros_like(x),
        x.to("cpu").to(x),
    ):
        assert y.device == torch.device("openreg:1")
    assert torch.openreg.current_device() == 0


def test_outputs_are_resized():
    a, out = torch.ones(4, 4, device=D), torch.empty(0, device=D)
    assert torch.add(a, a, out=out) is out
    assert out.shape == (4, 4) and out.cpu().eq(2).all()
    a.resize_(8, 8)
    assert a.shape == (8, 8) and a.untyped_storage().nbytes() == 256


def test_results_that_are_views_share_memory():
    x = torch.zeros(4, device=D)
    for view in (x.narrow(0, 1, 2), x[1:3], x.unsqueeze(0), x.real):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.split(2)[1].fill_(7)
    assert x.tolist() == [0, 0, 7, 7]


def test_tensors_that_share_a_storage_in_one_call():
    x = torch.arange(6.0, device=D)
    torch._foreach_add_([x[:3], x[3:]], 1.0)
    assert x.tolist() == [1, 2, 3, 4, 5, 6]
    torch.add(x[:3], x[3:], out=x[:3])
    assert x.tolist() == [5, 7, 9, 4, 5, 6]


def test_conjugate_and_negative_views():
    c = torch.tensor([1 + 2j, 3 - 1j], device=D)
    assert (c.conj() + c).tolist() == [2, 6]
    assert c.conj().clone().tolist() == c.conj().tolist() == [1 - 2j, 3 + 1j]
    assert c.conj().imag.clone().tolist() == [-2, 1]
    assert c.conj().cpu().tolist() == [1 - 2j, 3 + 1j]
    assert torch.view_as_real(c).shape == (2, 2)


def test_copies_between_devices_and_types():
    x = torch.randn(3, 4)
    y = x.to(D).to("openreg:1").to(torch.float64).t().to("openreg:0")
    assert torch.equal(y.cpu().t(), x.double())
    z = torch.empty(4, 3, device="openreg:1")
    z.copy_(x.t())
    assert torch.equal(z.cpu(), x.t())


def test_scalars_of_the_host_are_welcome():
    x = torch.ones(2, device=D)
    assert (x + torch.tensor(2.0)).tolist() == [3, 3] == (x + 2).tolist()
    assert x[torch.tensor([1])].tolist() == [1]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x.to("openreg:1"),
        lambda x: x + x.cpu(),
        lambda x: x.cpu() @ x,
        lambda x: torch.cat([x, x.cpu()]),
        lambda x: torch.add(x, x, out=x.cpu()),
        lambda x: torch.nn.functional.linear(x, x.to("openreg:1")),
        lambda x: torch.where(x > 0, x, x.to("openreg:1")),
        lambda x: torch.nn.functional.conv1d(x[None], x.cpu()[None]),
        lambda x: torch.nn.functional.conv1d(x[None].cpu(), x[None]),
        lambda x: torch.nn.functional.conv1d(x[None], x[None], x[0, :1].to("openreg:1")),
    ],
)
def test_mixed_devices_are_refused(call):
    with pytest.raises(RuntimeError, match="same device"):
        call(torch.ones(2, 2, device=D))
    assert (torch.ones(2, device=D) + 1).tolist() == [2, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.to_sparse(),
        lambda x: torch.zeros(2, device=D, layout=torch.sparse_coo),
        lambda x: torch.empty(2, device=D, pin_memory=True),
        lambda x: x.numpy(),
    ],
)
def test_what_it_cannot_do_is_told(call):
    with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
        call(torch.ones(2, 2, device=D))
    assert (torch.ones(2, device=D) + 1).tolist() == [2, 2]


def test_operators_without_kernel_fall_back():
    before = torch.openreg._C._fallback_calls()
    torch.ones(2, device=D).sin()
    assert torch.openreg._C._fallback_calls() > before


SAMPLE = 12  # every twelfth in the ordinary run
OPERATORS = {full_name(op): op for op in operators()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*list(OPERATORS)[::SAMPLE], "as_strided.partial_views", "tensor_split"])
def test_a_sample_of_the_database(name):
    found = difference(OPERATORS[name])
    if name in KNOWN:
        assert found.problem, f"{name} works now: take it out of KNOWN"
    else:
        assert not found.problem and (found.equal or name in NOT_ON_THE_CPU)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_whole_database():
    results = sweep(OPERATORS)
    assert {name for name, found in results.items() if found.problem} == KNOWN.keys(), summary(results)
    alike = {name for name, found in results.items() if not found.problem and not found.equal}
    assert alike == NOT_ON_THE_CPU and all(results[name].refused for name in alike)
    assert sum(bool(found.equal and not found.problem) for found in results.values()) >= AT_LEAST
