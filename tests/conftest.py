"""What every test relies on: the terminal's width, hypothesis' effort, where real captures lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CAPTURES = Path(__file__).resolve().parents[1] / ".." / "shared" / "captures"

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile(
    "ci",
    max_examples=300,
    deadline=None,  # a shared machine may stop at any moment
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every test and what it starts a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(scope="session")
def captures() -> Path:
    """Give the folder of real captures; skip where it is not."""
    if not CAPTURES.is_dir():
        pytest.skip("no folder of real captures beside the project")
    return CAPTURES.resolve()
