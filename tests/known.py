"""Narrows optional values that a test knows to be there."""

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return a value that is not None."""
    assert value is not None
    return value
