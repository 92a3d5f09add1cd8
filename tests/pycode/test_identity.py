"""Caches by identity."""

from __future__ import annotations

import gc

from minidynamo.pycode.identity import IdentityCache


class Equal:
    """All are equal, as code objects can be."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def test_equal_keys_are_different():
    cache: IdentityCache[str] = IdentityCache()
    one, two = Equal(), Equal()
    assert cache.set(one, "one") == "one"
    assert cache.get(one) == "one" and cache.get(two) is None
    cache.set(two, "two")
    cache.set(one, "again")
    assert (cache.get(one), cache.get(two), len(cache)) == ("again", "two", 2)


def test_entries_die_with_their_keys():
    cache: IdentityCache[list[int]] = IdentityCache()
    gc.disable()
    try:
        for number in range(200):  # ids are used again
            key = Equal()
            assert cache.get(key) is None
            cache.set(key, [number])
            assert cache.get(key) == [number] and len(cache) <= 2
        del key
        assert len(cache) == 0
    finally:
        gc.enable()
