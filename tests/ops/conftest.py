"""Fixtures of tests of formulas."""

from collections.abc import Iterator

import pytest

from pyprof import ops
from pyprof.ops import registry


@pytest.fixture
def scratch() -> Iterator[None]:
    """Undo what a test registers."""
    ops.models()
    before = dict(registry._MODELS)
    yield
    registry._MODELS.clear()
    registry._MODELS.update(before)
