"""Options: names, types and values are checked; patch restores."""

import os
import subprocess
import sys
import warnings

import pytest

from minidynamo import config
from minidynamo.exc import MinidynamoWarning


def test_unknown_option_names_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'cache_size_limit'"):
        config.cache_size_limits = 3


def test_unknown_option_without_neighbour_lists_all():
    with pytest.raises(
        AttributeError, match="options are accumulated_recompile_limit, assume_static_by_default"
    ):
        config.zzz  # noqa: B018


@pytest.mark.parametrize(
    ("name", "value"), [("cache_size_limit", "8"), ("suppress_errors", 1), ("internal_errors", True)]
)
def test_type_is_checked(name, value):
    with pytest.raises(TypeError, match=f"minidynamo.config.{name} takes"):
        setattr(config, name, value)


def test_choice_is_checked():
    with pytest.raises(ValueError, match="takes one of 'warn', 'raise'"):
        config.internal_errors = "ignore"


def test_alias_is_the_same_option():
    with config.patch(recompile_limit=3):
        assert config.cache_size_limit == config.recompile_limit == 3


def test_patch_restores_after_an_error():
    before = config.cache_size_limit
    with pytest.raises(RuntimeError), config.patch({"cache_size_limit": 1}, suppress_errors=True):
        assert config.cache_size_limit == 1 and config.suppress_errors
        raise RuntimeError
    assert config.cache_size_limit == before and not config.suppress_errors


def test_patch_with_one_bad_option_changes_nothing():
    before = config.cache_size_limit
    with pytest.raises(TypeError), config.patch(cache_size_limit=1, suppress_errors="yes"):
        pass
    assert config.cache_size_limit == before


def test_patch_as_decorator():
    @config.patch(cache_size_limit=2)
    def limited():
        return config.cache_size_limit

    assert limited() == 2 and config.cache_size_limit != 2


FIXED = {name: option.default for name, option in config.OPTIONS.items() if option.fixed}


@pytest.mark.parametrize("name", FIXED)
def test_what_cannot_be_changed_says_so_in_one_line_and_stays(name):
    value = FIXED[name]
    with pytest.warns(
        MinidynamoWarning, match=f"config.{name} = {not value} is not supported and stays {value}"
    ) as told:
        setattr(config, name, not value)
        with config.patch({name: not value}):
            assert getattr(config, name) is value
    assert [w.filename for w in told] == [__file__] * 2 and "\n" not in str(told[0].message)
    assert getattr(config, name) is value
    with warnings.catch_warnings(action="error"):
        setattr(config, name, value)


def test_what_is_fixed_is_what_the_design_names():
    wanted = (
        "dynamic_shapes assume_static_by_default automatic_dynamic_shapes specialize_int specialize_float"
    )
    assert {*wanted.split(), "capture_scalar_outputs"} == set(FIXED)


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("TORCHDYNAMO_VERBOSE", "verbose"),
        ("TORCHDYNAMO_SUPPRESS_ERRORS", "suppress_errors"),
        ("TORCHDYNAMO_DISABLE", "disable"),
        ("TORCH_COMPILE_DISABLE", "disable"),
        ("MINIDYNAMO_DISABLE", "disable"),
    ],
)
def test_variables_of_the_environment(variable, name):
    text = f"from minidynamo import config; print(config.{name})"
    for value, expected in (("1", "True"), ("0", "False")):
        done = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, variable: value}
        )
        assert done.stdout.strip() == expected
