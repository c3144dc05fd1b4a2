"""Fixtures of all tests of captures."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def main_is_put_back() -> Iterator[None]:
    """A script that was run stays __main__, as in Python; here the tests' own comes back."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
