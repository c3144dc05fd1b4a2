"""Attention of Hugging Face models."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


def test_a_network_of_torch_is_refused_with_the_code_to_write(tmp_path: Path) -> None:
    (why,) = run_child(training(tmp_path / "a.py"), "sdpa").no_effect.values()
    assert "F.scaled_dot_product_attention(q, k, v)" in why
