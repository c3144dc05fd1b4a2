"""What a test knows: values that are there, and functions that fail."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return a value that is not None."""
    assert value is not None
    return value


def raising(error: BaseException) -> Callable[..., NoReturn]:
    """Return a function that raises an error, whatever it is called with."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail
