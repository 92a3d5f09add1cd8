"""Options: names, types and values are checked; patch restores."""

import pytest

from minidynamo import config


def test_unknown_option_names_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'cache_size_limit'"):
        config.cache_size_limits = 3


def test_unknown_option_without_neighbour_lists_all():
    with pytest.raises(AttributeError, match="options are backend, cache_size_limit"):
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
