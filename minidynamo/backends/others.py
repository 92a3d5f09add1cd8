"""Backends that are not ours: torch's registry and installed packages. Nothing here is loaded for a name of ours.

This is compatibility code: the only place that imports torch's own front end, for its registry.
"""

from __future__ import annotations

from typing import Any

from ..exc import InvalidBackend

GROUP = "torch_dynamo_backends"


def of_torch(name: str) -> Any:
    """The backend that torch knows by this name, or None. Raises InvalidBackend when it does not load."""
    from torch._dynamo.backends import registry
    from torch._dynamo.exc import InvalidBackend as Unknown

    try:
        return registry.lookup_backend(name)
    except Unknown:
        return None
    except Exception as error:  # an entry point that torch loads runs code of its package
        raise broken(name, error) from error


def torch_names(exclude_tags: tuple[str, ...]) -> list[str]:
    """The names in torch's registry."""
    from torch._dynamo.backends import registry

    return registry.list_backends(exclude_tags=exclude_tags)


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def entry_point_names() -> list[str]:
    """The names that installed packages offer."""
    return sorted(_entry_points())


def of_entry_point(name: str) -> Any:
    """The backend that an installed package offers by this name, or None. (torch reads the entry points once; a package may
    have come since.) Raises InvalidBackend when it does not load."""
    point = _entry_points().get(name)
    if point is None:
        return None
    try:
        return point.load()
    except Exception as error:
        raise broken(name, error) from error


def broken(name: str, error: Exception) -> InvalidBackend:
    """What is said of a backend whose package does not load."""
    return InvalidBackend(
        f"the backend named {name!r} does not load: {type(error).__name__}: {error}; mend or remove its package"
    )
