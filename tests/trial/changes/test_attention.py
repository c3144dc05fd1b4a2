"""Attention of Hugging Face models."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pyprof.trial.change import changes
from tests.trial.built import run_child, training


@pytest.mark.slow
def test_a_network_of_torch_is_refused_with_the_code_to_write(tmp_path: Path) -> None:
    (why,) = run_child(training(tmp_path / "a.py"), "sdpa").no_effect.values()
    assert "F.scaled_dot_product_attention(q, k, v)" in why


@pytest.mark.parametrize(("before", "changed"), [("eager", True), ("flash_attention_2", False)])
def test_only_eager_attention_is_replaced(before: str, *, changed: bool) -> None:
    begin: list[Any] = []
    chosen: list[str] = []
    model = torch.nn.Identity()
    model.config = SimpleNamespace(_attn_implementation=before)
    model.set_attn_implementation = chosen.append
    why_no_effect = changes()["sdpa"].apply(
        SimpleNamespace(calls=SimpleNamespace(on_loop=begin.append))
    )
    begin[0](model)
    assert chosen == ["sdpa"] * changed
    assert why_no_effect
    why = "the script's model has flash_attention_2 attention already"
    assert why_no_effect() == (None if changed else why)
