"""Attributes of torch and of the standard library, replaced while a script runs."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replace_attributes(*places: tuple[Any, str, object]) -> Iterator[None]:
    """Set attributes, each given as its home, name and value, until the `with` ends.

    An attribute that its home only inherits is removed again.
    """
    with ExitStack() as stack:
        for home, name, value in places:
            if name in vars(home):
                stack.callback(setattr, home, name, vars(home)[name])
            else:
                stack.callback(delattr, home, name)
            setattr(home, name, value)
        yield
