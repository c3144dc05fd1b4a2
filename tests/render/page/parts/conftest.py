"""The parts of the page of two steps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.analysis.captured import capture
from tests.render.page.shown_parts import shown, sums_of

Made: TypeAlias = Mapping[str, Mapping[str, Any]]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return what each part shows for two steps, each of 750 ns of GPU time."""
    return shown(sums_of(capture(tmp_path / "net.sqlite", steps=2)))
