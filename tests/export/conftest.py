"""Fixtures of exports."""

from pathlib import Path

import pytest

from tests.analysis.captured import capture


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return capture(tmp_path / "net.sqlite")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return three ranks' captures: one is slower, and the last one's clock is ahead."""
    folder = tmp_path_factory.mktemp("ranks")
    for rank in range(3):
        capture(folder / f"net-rank{rank}.sqlite", slower=1 + rank % 2, steps=2,
                clock_ns=5_000_123 * (rank // 2))  # fmt: skip
    return folder
