"""Ranges of torch.cuda.nvtx without NVTX."""

from contextlib import ExitStack
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pyprof.capture.under_profiler.marking import mark
from pyprof.instrument.ranges import emit


def test_nvtx_of_a_build_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(torch._C, "_nvtx"):
        pytest.skip("this build has NVTX")
    pushed: list[str] = []
    sink: Any = emit.Sink(pushed.append, lambda: pushed.append("pop"))
    monkeypatch.setattr(emit, "nvtx_sink", lambda: sink)
    with ExitStack() as stack:
        mark(stack, test_nvtx_of_a_build_without_it)
        with torch.cuda.nvtx.range("mine"):
            pass
    assert pushed == ["mine", "pop"]
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        torch.cuda.nvtx.range_push("mine")
