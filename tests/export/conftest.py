"""Fixtures of exports."""

from pathlib import Path

import pytest

from tests.analysis.captured import capture


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return capture(tmp_path / "net.sqlite")
