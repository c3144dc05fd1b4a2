"""Steps of vLLM and SGLang in graphs: nearly all of their time has a cost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pyprof
from pyprof.inputs import model_config
from pyprof.prof.table import Override
from tests.commands import run

if TYPE_CHECKING:
    import pandas as pd

GPT_OSS = {
    "hidden_size": 2880, "intermediate_size": 2880, "num_local_experts": 32,
    "num_experts_per_tok": 4, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "num_hidden_layers": 24,
}  # fmt: skip


def _known(rows: pd.DataFrame) -> float:
    """Return the share of the GPU time of rows with known FLOPs, and bytes where they compute."""
    known = rows.flops.notna() & (rows.bytes.notna() | rows.why.str.startswith("helper"))
    return float(rows.sil[known].sum() / rows.sil.sum())


@pytest.mark.slow
def test_a_decode_step_of_sglang(captures: Path) -> None:
    """All but three kernels without an op, and a copy that converts a list."""
    rows = pyprof.load(captures / "kineto-mi300x-sglang-decode-graph" / "replay.pt.trace.json.gz")
    assert _known(rows) > 0.99
    paged = rows[rows.kernel.str.contains("QKV_mfma16")]
    assert set(paged.flops) == {537_149_440}  # as TraceLens says


@pytest.mark.long
def test_a_mixed_step_of_vllm(captures: Path, tmp_path: Path) -> None:
    """Its experts are four fifths of the time; the model's configuration gives their cost."""
    trace = captures / "kineto-mi300x-vllm-piecewise-graph" / "replay.pt.trace.json.gz"
    assert 0.18 < _known(pyprof.load(trace)) < 0.25
    config = tmp_path / "config.json"
    config.write_text(json.dumps(GPT_OSS))
    rows = pyprof.load(trace, Override(model=model_config.read(str(config))))
    assert _known(rows) > 0.999
    experts = rows[rows.kernel.str.startswith("_matmul_ogs")]
    assert experts.flops.sum() == 24 * 2 * 8192 * 4 * 3 * 2880 * 2880
    assert set(rows[rows.kernel == "kernel_unified_attention_2d"].flops) == {65_010_180_096}
    types = ["sliding_attention", "full_attention"] * 12
    config.write_text(json.dumps({**GPT_OSS, "sliding_window": 128, "layer_types": types}))
    rows = pyprof.load(trace, Override(model=model_config.read(str(config))))
    attention = rows[rows.kernel == "kernel_unified_attention_2d"]
    whole = attention[attention.flops.notna()]
    assert len(whole) == 12
    assert whole.sil.min() > 2 * attention[attention.flops.isna()].sil.max()


@pytest.mark.slow
def test_the_page_says_how_ops_were_found(captures: Path, tmp_path: Path) -> None:
    trace = captures / "kineto-mi300x-sglang-decode-graph" / "replay.pt.trace.json.gz"
    shown = run("summary", "-q", trace).stdout
    assert "graph capture 98.8 %" in shown
    assert run("report", "-q", trace, "-o", tmp_path / "net.html").code == 0
    page = (tmp_path / "net.html").read_text("utf-8")
    assert re.search(r"Ops found by: launch [^,]*, graph capture [\d.]+ ms \(98\.8 %\)", page)
