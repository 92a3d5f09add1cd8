"""Attribute access of the user's own, dicts of the user's classes, and what is asked about classes and functions."""

from __future__ import annotations

from tests.eager import check

CONFIG = """
    class Config:
        names = {"width": "size"}

        def __init__(self, **values):
            for name, value in values.items():
                setattr(self, name, value)

        def __getattribute__(self, name):
            if name != "names" and name in super().__getattribute__("names"):
                name = super().__getattribute__("names")[name]
            return super().__getattribute__(name)

        def double(self):
            return self.width * 2
"""


def test_an_attribute_is_read_through_the_method():
    seen = check(
        CONFIG
        + """
    def f(x, config):
        return x * config.width + config.double(), getattr(config, "other", 5), hasattr(config, "size")
    """,
        "f(T(2), Config(size=3))",
        "f(T(2), Config(size=3))",
        "f(T(2), Config(size=4))",
        "f(T(2), Config(size=4, other=1))",
    )
    assert seen.reasons == [] and seen.graphs == 3


def test_the_last_resort_of_a_class_is_asked_too():
    seen = check(
        """
        class Rest:
            def __getattr__(self, name):
                if name.startswith("a"):
                    return 7
                raise AttributeError(name)

        def f(x, rest):
            return x * rest.abc, hasattr(rest, "b"), getattr(rest, "c", 3)
        """,
        "f(T(2), Rest())",
        "f(T(2), Rest())",
    )
    assert seen.reasons == [] and seen.graphs == 1


def test_a_dict_of_the_users_class_is_made_and_handed_out():
    seen = check(
        """
        from collections import OrderedDict

        class Output(OrderedDict):
            def __init__(self, **values):
                super().__init__()
                for name, value in values.items():
                    setattr(self, name, value)

            def __setattr__(self, name, value):
                super().__setitem__(name, value)
                super().__setattr__(name, value)

            def first(self):
                return self[next(iter(self))]

        def f(x):
            made = Output(logits=x * 2, loss=x.sum())
            return made, made.first() + made.loss, len(made), "loss" in made, list(made.keys()), made.__dict__.get("z")
        """,
        "f(T(2))",
        "f(T(2))",
    )
    assert seen.reasons == [] and seen.graphs == 1


def test_what_is_asked_about_functions_and_types():
    seen = check(
        """
        import abc, inspect

        class Base(abc.ABC):
            pass

        class Layer:
            def run(self, x, scale=2, *rest, key=None):
                return x * scale

        def f(x, layer):
            names = inspect.signature(layer.run).parameters
            code = Layer.run.__code__
            return (
                layer.run(x), len(names), "scale" in names, list(names), code.co_varnames.index("x"), str(type(layer)),
                isinstance(layer, Base), torch.finfo(x.dtype).min, (1,) + x.shape, x[slice(0, 1)],
                type(layer).run is Layer.run, hasattr(x, "jax"),
            )
        """,
        "f(T(2), Layer())",
        "f(T(2), Layer())",
        "Base.register(Layer)",
        "f(T(2), Layer())",
        "f(T(3), Layer())",
    )
    assert seen.reasons == []


def test_random_numbers_in_a_try_block_are_drawn_once():
    seen = check(
        """
        def f(x, index):
            try:
                y = F.dropout(x, 0.5) + 1
                y = y + torch.index_select(x, 0, index)
            except IndexError:
                y = x * torch.rand(2)
            return y, torch.rand(1)
        """,
        "f(T(2), torch.tensor([1]))",
        "f(T(2), torch.tensor([0]))",
        "f(T(2), torch.tensor([9]))",
    )
    assert seen.compiled[0].ops > 1 and seen.breaks == []
