"""Every row of unknown cost has a reason."""

from pathlib import Path

import numpy as np
import pytest

from pyprof import schema
from pyprof.answers.parts import known_cost
from pyprof.parse import parse
from pyprof.parse.record_file import load
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.costs import UNEXPLAINED, explain
from pyprof.prof.coverage import cost_coverage
from pyprof.prof.table import Table
from pyprof.records.merging import merge_sums
from pyprof.render.text.known_cost_text import sentence
from tests.analysis.captures import Work, capture, copy
from tests.readers.kineto_json import event, kernel, launch, read

_REAL = (
    "kineto-mi300x-vllm-piecewise-graph/replay.pt.trace.json.gz",
    "kineto-mi300x-sglang-decode-graph/replay.pt.trace.json.gz",
    "kineto-mi300x-sglang-decode-graph/capture_traces/bs_32_rank0.json.gz",
    "kineto-h100-vit-inference/trace.json.gz",
    "kineto-torch-compile-triton/trace.json.gz",
    "kineto-v100-resnet-ddp/trace.json.gz",
    "nsys2022.2-a100-duplicate-api-rows/net.sqlite",
    "nsys2021.2-rtx6000-no-nvtx/net.sqlite",
    "nsys2024.2-a100-pyprof-markers/net.sqlite",
    "nsys2024.6-a100-cudagraph/net.sqlite",
    "nsys2025.3-t4-registered-strings/net.sqlite",
    "nvprof-v100-apex/net.dict",
)


def check(table: Table) -> None:
    """Look at every row, and at the sum of them."""
    costs = table.costs
    unknown = (costs.flops < 0) | (costs.bytes < 0)
    why = np.array(COLUMNS["why"].values(table).to_pylist(), object)
    assert not [row for row in np.flatnonzero(unknown) if not why[row]]
    assert "" not in cost_coverage(table).unknown
    assert "inside it: " not in cost_coverage(table).unknown


@pytest.mark.long
@pytest.mark.parametrize("name", _REAL)
def test_unknown_costs_in_real_captures_have_a_reason(name: str, captures: Path) -> None:
    check(Table(load(str(captures / name))))


def test_copies_and_fills_of_unknown_size() -> None:
    """AMD's traces lack some sizes: `why` says so, and not that an op is unknown."""
    kinds = (schema.MEMCPY, schema.MEMSET, schema.MEMCPY)
    names = ("[CUDA memcpy DtoD]", "[CUDA memset]", "[CUDA memcpy HtoD]")
    work = [
        Work((at, at + 5), (at, at + 1), name, kind=kind, bytes=size)
        for at, name, kind, size in zip((10, 20, 30), names, kinds, (None, None, 8), strict=True)
    ]
    table = Table(parse(capture(work)))
    check(table)
    reason = "the number of bytes copied or set is not recorded"
    assert COLUMNS["why"].values(table).to_pylist()[:2] == [reason] * 2
    assert table.costs.flops.tolist() == [0, 0, 0]
    assert cost_coverage(table).unknown == {reason: (10, 2)}


@pytest.mark.parametrize(
    ("copied_ns", "kernels", "expected"),
    [
        (900, ["unknown"], "cost known for 90.0 % of GPU time, of kernels alone 0.0 %"),
        (50, ["unknown"] * 99, "cost known for 0.5 % of GPU time, of kernels alone 0.0 %"),
        (0, ["unknown"], "cost known for 0.0 % of GPU time"),
        (900, [], "cost known for 100.0 % of GPU time"),
    ],
)
def test_copies_do_not_pass_for_kernels(copied_ns: int, kernels: list[str], expected: str) -> None:
    """Time whose cost is known is split into kernels and copies; for several captures, too."""
    work = [Work((1000 * n, 1000 * n + 100), (1000 * n - 9, 1000 * n - 5), name)
            for n, name in enumerate(kernels, 1)]  # fmt: skip
    copied = [copy((1, 1 + copied_ns), (0, 1))] if copied_ns else []
    known = cost_coverage(Table(parse(capture([*copied, *work]))))
    for each in (known, merge_sums(known, known)):
        assert sentence(known_cost(each)).partition(";")[0] == expected


def test_sizes_that_only_the_call_records(tmp_path: Path) -> None:
    """AMD's calls record the size of copies, but not of fills; a kernel copies nothing."""
    calls = [
        event("cuda_runtime", "hipMemcpyAsync", 1, 1, correlation=1, bytes="13248", kind="1"),
        event("cuda_runtime", "hipMemsetAsync", 3, 1, correlation=2),
        {**launch(3, 5), "args": {"correlation": 3, "size": 99}},
    ]
    moved = {"pid": 0, "tid": 0, "device": 0, "stream": 0}
    work = [
        event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 10, 2, correlation=1, **moved),
        event("gpu_memset", "Memset (Device)", 20, 2, correlation=2, **moved),
        kernel(3, 30),
    ]
    table = Table(parse(read(tmp_path, [*calls, *work])))
    check(table)
    assert table.records.arrow("bytes").to_pylist() == [13248, None, None]
    assert COLUMNS["bytes"].values(table).to_pylist()[:2] == [2 * 13248, None]


def test_a_formula_that_gives_no_reason() -> None:
    reasons, reason_of = ["", "why", "inside it: "], np.array([0, 1, 2, 0])
    explain(np.array([True, True, True, False]), reasons, reason_of)
    assert [reasons[place] for place in reason_of] == [UNEXPLAINED, "why", UNEXPLAINED, ""]
