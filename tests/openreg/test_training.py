"""What a program does with a device: modules, optimizers, autocast, saving, copying, profiling."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

D = "openreg"
OPTIMIZERS = [
    *(torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop),
    *(torch.optim.Adadelta, torch.optim.Adamax, torch.optim.NAdam, torch.optim.RAdam, torch.optim.LBFGS),
]


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    return {
        "mlp": (
            nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2)),
            torch.randn(5, 4),
        ),
        "conv": (
            nn.Sequential(
                nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
            ),
            torch.randn(2, 3, 8, 8),
        ),
        "transposed": (nn.ConvTranspose1d(2, 3, 2, bias=False), torch.randn(2, 2, 5)),
        "attention": (
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
            torch.randn(2, 3, 8),
        ),
        "embedding": (nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 2)), torch.randint(0, 7, (3, 5))),
    }


@pytest.mark.parametrize("name", models())
def test_forward_and_backward_equal_the_cpu(name):
    torch.manual_seed(0)
    model, x = models()[name]
    other = copy.deepcopy(model).to(D)
    model(x).square().sum().backward()
    other(x.to(D)).square().sum().backward()
    for p, q in zip(model.parameters(), other.parameters()):
        assert q.device == q.grad.device == torch.device("openreg:0")
        torch.testing.assert_close(p.grad, q.grad.cpu(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_networks(kind, bias):
    torch.manual_seed(0)
    cell = kind(3, 4, num_layers=2, bias=bias, batch_first=True)
    other = copy.deepcopy(cell).to("openreg:1")
    x = torch.randn(2, 5, 3)
    cell(x)[0].square().sum().backward()
    other(x.to("openreg:1"))[0].square().sum().backward()
    for p, q in zip(cell.parameters(), other.parameters()):
        torch.testing.assert_close(p.grad, q.grad.cpu(), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: o.__name__)
def test_optimizers(optimizer):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    other = copy.deepcopy(model).to(D)
    x, y = torch.randn(5, 4), torch.randn(5, 2)
    for m, device in ((model, "cpu"), (other, D)):
        o = optimizer(m.parameters(), lr=1e-2)

        def closure(m=m, o=o, device=device):
            o.zero_grad()
            loss = (m(x.to(device)) - y.to(device)).square().mean()
            loss.backward()
            return loss

        for _ in range(3):
            o.step(closure)
    for p, q in zip(model.parameters(), other.parameters()):
        torch.testing.assert_close(p, q.cpu(), rtol=1e-4, atol=1e-5)


def test_modules_move_and_change_type():
    module = nn.LSTM(3, 4).to("openreg:1")
    assert {p.device for p in module.parameters()} == {torch.device("openreg:1")}
    assert next(module.to(D).half().parameters()).dtype == torch.float16
    assert next(module.cpu().float().parameters()).is_cpu
    assert nn.Linear(2, 2, device=D).weight.is_openreg


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype):
    a, b = torch.randn(2, 3, device=D), torch.randn(3, 3, device=D)
    with torch.autocast(D, dtype=dtype):
        assert torch.get_autocast_dtype(D) == dtype and torch.is_autocast_enabled(D)
        assert torch.mm(a, b).dtype == dtype
        assert torch.dot(a[0].to(dtype), a[1].to(dtype)).dtype == torch.float32
        assert torch.sum(a.to(dtype)).dtype == torch.float32
        assert torch.cat([a.to(dtype), a]).dtype == torch.float32
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(a.sigmoid(), a.sigmoid())
        with torch.autocast(D, enabled=False):
            assert torch.mm(a, b).dtype == torch.float32
    assert torch.mm(a, b).dtype == torch.float32
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autocast(D, dtype=torch.float64):
            pass
    assert caught and "openreg" in str(caught[0].message).lower()


def test_mixed_precision_training_step():
    torch.manual_seed(0)
    model = nn.Linear(3, 3).to(D)
    before = model.weight.detach().clone()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler(D, init_scale=8.0)
    with torch.autocast(D):
        loss = model(torch.randn(2, 3, device=D)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before.cpu(), model.weight.cpu())


@pytest.mark.parametrize("target", [None, "cpu", "openreg:0", "openreg:1"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_saving_and_loading(target, weights_only):
    x = torch.randn(3, 3, device="openreg:1")
    saved = io.BytesIO()
    torch.save({"x": x, "p": nn.Parameter(x), "view": x[1:]}, saved)
    saved.seek(0)
    loaded = torch.load(saved, map_location=target, weights_only=weights_only)
    assert loaded["x"].device == loaded["p"].device == torch.device(target or "openreg:1")
    assert torch.equal(loaded["x"].cpu(), x.cpu()) and isinstance(loaded["p"], nn.Parameter)
    loaded["x"].zero_()
    assert loaded["view"].cpu().eq(0).all()


def test_copying_and_pickling():
    x = torch.randn(3, device="openreg:1", requires_grad=True)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.device == x.device and y.requires_grad and torch.equal(y.cpu(), x.cpu())


def test_state_dicts():
    model = nn.Linear(2, 2).to("openreg:1")
    other = nn.Linear(2, 2)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.weight, model.weight.cpu()) and other.weight.is_cpu


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_draw_the_same_numbers_again(reentrant):
    x = torch.ones(100, device=D, requires_grad=True)
    y = checkpoint(nn.Dropout(0.5), x, use_reentrant=reentrant)
    y.sum().backward()
    assert torch.equal((y > 0).cpu(), (x.grad > 0).cpu())


def test_the_profiler_times_the_device(capfd):
    x = torch.ones(64, device=D)
    with torch.autograd.profiler.profile(use_device=D) as profile:
        for _ in range(3):
            x = x.sin()
    rows = {event.key: event for event in profile.key_averages()}
    assert rows["aten::sin"].count >= 3 and rows["aten::sin"].device_time_total > 0
    assert "warning" not in capfd.readouterr().err.lower()


def test_custom_functions_and_hooks():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, device=D, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.device))
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and seen == [x.device]


def test_fake_tensors_and_fx():
    from torch._subclasses import FakeTensorMode

    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU()).to(D)
    x = torch.randn(2, 3, device=D)
    assert torch.equal(torch.fx.symbolic_trace(module)(x).cpu(), module(x).cpu())
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(2, 3, device="openreg:1"))
        assert (fake @ torch.empty(3, 3, device="openreg:1")).device == torch.device("openreg:1")
        assert nn.functional.dropout(torch.empty(2, device=D)).is_openreg
