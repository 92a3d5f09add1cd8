"""Calls of every module of torch.nn: those of torch's module database (`common_modules.module_db`), and a sample of each class that is
not in it."""

from __future__ import annotations

import functools
import itertools
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tests.graph.op_db_cases import copied, described

PROGRAM = "def f(m, *args, **kwargs):\n    return m(*args, **kwargs)\n"
_numbers = itertools.count()


@dataclass
class Case:
    """A module made with some arguments, in one mode, and what it is called with."""

    name: str
    label: str
    make: Callable[[], nn.Module]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def T(*shape: int, low: float = -1.0) -> torch.Tensor:
    return torch.linspace(low, 1.5, torch.Size(shape).numel()).reshape(shape).requires_grad_()


def _pooled(dims: int) -> tuple[torch.Tensor, torch.Tensor]:
    pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
    values, at = pool(T(1, 2, *[4] * dims).detach())
    return values.requires_grad_(), at


def _decoder() -> nn.Module:
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    return nn.TransformerDecoder(layer, 2, nn.LayerNorm(8))


class Container(nn.Module):
    """Calls what it contains."""

    def __init__(self, layers: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.layers, self.call = layers, call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self.layers, x)


def _each(layers: Any, x: torch.Tensor) -> torch.Tensor:
    for layer in layers:
        x = layer(x)
    return x


def _named(layers: Any, x: torch.Tensor) -> torch.Tensor:
    for name, layer in layers.items():
        x = layer(x) if name in layers else x
    return x + len(layers)


def _weighted(weights: Any, x: torch.Tensor) -> torch.Tensor:
    return sum(x * weight for weight in weights)


def _named_weights(weights: Any, x: torch.Tensor) -> torch.Tensor:
    return sum(x * weights[name] for name in weights.keys())


_CLASSES = torch.tensor([0, 3, 6])
_BAG = (torch.tensor([1, 2, 4, 3]), torch.tensor([0, 2]))
#: (name, how it is made, what it is called with) of the classes that the database lacks
MORE: tuple[tuple[str, Callable[[], nn.Module], tuple[Any, ...]], ...] = (
    ("AdaptiveLogSoftmaxWithLoss", lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 5]), (T(3, 4), _CLASSES)),
    *(
        (name, functools.partial(getattr(nn, name), 0.4), (T(2, 3, 4, *extra),))
        for name, extra in (
            *(("AlphaDropout", ()), ("Dropout", ()), ("Dropout1d", ()), ("FeatureAlphaDropout", ())),
            *(("Dropout2d", (2,)), ("Dropout3d", (2, 2))),
        )
    ),
    ("Dropout inplace", lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.4, inplace=True)), (T(2, 3),)),
    ("ChannelShuffle", lambda: nn.ChannelShuffle(2), (T(1, 4, 2, 2),)),
    ("CosineSimilarity", lambda: nn.CosineSimilarity(dim=1), (T(2, 3), T(2, 3, low=0.5))),
    ("CrossMapLRN2d", lambda: nn.CrossMapLRN2d(2), (T(1, 4, 2, 2),)),
    ("EmbeddingBag", lambda: nn.EmbeddingBag(5, 3, mode="sum"), _BAG),
    ("EmbeddingBag max_norm", lambda: nn.EmbeddingBag(5, 3, max_norm=0.5), _BAG),
    ("Flatten", lambda: nn.Flatten(1), (T(2, 3, 4),)),
    ("Unflatten", lambda: nn.Unflatten(1, (2, 2)), (T(2, 4),)),
    ("Fold", lambda: nn.Fold((4, 5), (2, 2)), (T(1, 8, 12),)),
    ("Unfold", lambda: nn.Unfold((2, 2)), (T(1, 2, 4, 5),)),
    ("Hardsigmoid", nn.Hardsigmoid, (T(2, 3),)),
    ("Identity", lambda: nn.Identity(1, x=2), (T(2),)),
    *(
        (f"Lazy{kind}Norm{d}d", getattr(nn, f"Lazy{kind}Norm{d}d"), (T(2, 3, *[2] * d),))
        for kind in ("Batch", "Instance")
        for d in (1, 2, 3)
    ),
    ("FractionalMaxPool2d", lambda: nn.FractionalMaxPool2d(2, output_size=3), (T(1, 2, 6, 6),)),
    ("FractionalMaxPool3d", lambda: nn.FractionalMaxPool3d(2, output_size=2), (T(1, 2, 4, 4, 4),)),
    ("LazyLinear", lambda: nn.LazyLinear(3), (T(2, 4),)),
    *((f"MaxUnpool{d}d", functools.partial(getattr(nn, f"MaxUnpool{d}d"), 2), _pooled(d)) for d in (1, 2, 3)),
    ("ModuleList", lambda: Container(nn.ModuleList([nn.Linear(3, 3), nn.Tanh()]), _each), (T(2, 3),)),
    ("ModuleDict", lambda: Container(nn.ModuleDict({"a": nn.Linear(3, 3)}), _named), (T(2, 3),)),
    ("ParameterList", lambda: Container(nn.ParameterList([T(3), T(3)]), _weighted), (T(2, 3),)),
    ("ParameterDict", lambda: Container(nn.ParameterDict({"a": T(3)}), _named_weights), (T(2, 3),)),
    ("Sequential", lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU()), (T(2, 3),)),
    ("PairwiseDistance", lambda: nn.PairwiseDistance(keepdim=True), (T(2, 3), T(2, 3, low=0.5))),
    ("PixelShuffle", lambda: nn.PixelShuffle(2), (T(1, 4, 2, 2),)),
    ("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), (T(1, 1, 4, 4),)),
    ("RReLU", nn.RReLU, (T(2, 3),)),
    ("SyncBatchNorm", lambda: nn.SyncBatchNorm(3), (T(2, 3, 2, 2),)),
    ("TransformerDecoder", _decoder, (T(2, 3, 8), T(2, 4, 8))),
    ("TripletMarginLoss", nn.TripletMarginLoss, (T(2, 3), T(2, 3, low=0.5), T(2, 3, low=-3.0))),
    (
        "TripletMarginWithDistanceLoss",
        lambda: nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(), swap=True),
        (T(2, 3), T(2, 3, low=0.5), T(2, 3, low=-3.0)),
    ),
    ("Upsample", lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (T(1, 2, 3, 3),)),
    ("UpsamplingBilinear2d", lambda: nn.UpsamplingBilinear2d(scale_factor=2), (T(1, 2, 3, 3),)),
    ("UpsamplingNearest2d", lambda: nn.UpsamplingNearest2d((5, 5)), (T(1, 2, 3, 3),)),
    ("NLLLoss2d", nn.NLLLoss2d, (T(2, 3, 2, 2), torch.ones(2, 2, 2, dtype=torch.int64))),
)
#: Classes that are no layers to be called, or that need more than one process or device.
NO_LAYERS = ("Container", "DataParallel", "Module", "RNNBase", "RNNCellBase")


def database() -> Any:
    from torch.testing._internal import common_modules

    return common_modules.module_db


def covered() -> set[str]:
    """Names of the classes that are called here."""
    return {entry.module_cls.__name__ for entry in database()} | {name.split()[0] for name, *_ in MORE}


def more() -> Iterator[Case]:
    """The samples of classes that the database lacks, in training and in evaluation."""
    for name, maker, args in MORE:
        for training in (True, False):

            def make(maker: Any = maker, training: bool = training) -> Any:
                torch.manual_seed(1)
                return maker().train(training)

            yield Case(name, "train" if training else "eval", make, args, {})


def cases(samples: int = 8) -> Iterator[Case]:
    """In training and in evaluation: some samples of each entry, evenly chosen, in float32, and those of `more`."""
    for entry in database():
        for training in (True, False):
            mode = "train" if training else "eval"
            torch.manual_seed(0)
            known = list(
                entry.module_inputs_func(
                    entry, device="cpu", dtype=torch.float32, requires_grad=True, training=training
                )
            )
            for index in range(0, len(known), max(1, -(-len(known) // samples))):
                made, given = known[index].constructor_input, known[index].forward_input
                if given is None:
                    continue

                def make(cls: Any = entry.module_cls, made: Any = made, training: bool = training) -> Any:
                    torch.manual_seed(1)
                    return cls(*made.args, **made.kwargs).train(training)

                name = entry.name.removeprefix("nn.").replace(".", "_")
                yield Case(name, f"{mode} {index}", make, given.args, given.kwargs)
    yield from more()


def program() -> Callable[..., Any]:
    """A function that calls a module, with a code object of its own."""
    filename = f"<module_db {next(_numbers)}>"
    linecache.cache[filename] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), filename)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(PROGRAM, filename, "exec"), names)
    return names["f"]


def leaves(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()))


def run(fn: Callable[..., Any], case: Case) -> Any:
    """Two calls, each with its backward: results, gradients of arguments and parameters, buffers, state of the generator."""
    module = case.make()
    seen = []
    for _ in range(2):
        args, kwargs = copied(case.args), copied(case.kwargs)
        torch.manual_seed(0)
        result = fn(module, *args, **kwargs)
        wanted = [t for t in leaves(result) if t.requires_grad]
        if wanted:
            torch.autograd.backward(wanted, [torch.ones_like(t) for t in wanted])
        grads = [t.grad for t in leaves([args, kwargs]) if t.is_leaf]
        state = [(name, p.detach().clone(), p.grad) for name, p in module.named_parameters()]
        buffers = [(name, b.clone()) for name, b in module.named_buffers()]
        seen.append(described((result, args, kwargs, grads, state, buffers, torch.get_rng_state())))
        module.zero_grad()
    return seen
