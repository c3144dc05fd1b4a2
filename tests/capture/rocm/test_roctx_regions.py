"""Under rocprofv3 the script's ranges are ROCTx's, until everything is restored."""

from types import SimpleNamespace

import pytest
import torch.cuda.profiler

import pyprof
from pyprof.capture.rocm import roctx_regions

RANGE = [("resume", 0), ("pause", 0)]
"""Of all threads."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    calls: list[tuple[str, int]] = []

    def resume(thread: int) -> None:
        calls.append(("resume", thread))

    def pause(thread: int) -> None:
        calls.append(("pause", thread))

    monkeypatch.setattr(roctx_regions, "_calls", lambda: (resume, pause))
    return calls


def test_ranges_resume_and_pause_the_profiler(calls: list[tuple[str, int]]) -> None:
    before = torch.cuda.profiler.start
    with roctx_regions.torch_regions(of_script=True):
        torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
        with pyprof.profile():
            assert len(calls) == 3
    assert calls == RANGE * 2
    assert torch.cuda.profiler.start is before
    with pyprof.profile():
        assert len(calls) == 4


def test_a_range_that_starts_in_several_ways_is_one(
    calls: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a GPU pyprof.profile() calls the runtime, too, and so may a script."""
    runtime = SimpleNamespace(cudaProfilerStart=None, cudaProfilerStop=None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    with roctx_regions.torch_regions(of_script=True):
        with pyprof.profile():
            pass
        assert calls == RANGE
        torch.cuda.cudart().cudaProfilerStart()  # type: ignore[no-untyped-call]
        torch.cuda.cudart().cudaProfilerStop()  # type: ignore[no-untyped-call]
    assert calls == RANGE * 2


def test_with_steps_the_scripts_ranges_are_ignored(calls: list[tuple[str, int]]) -> None:
    with roctx_regions.torch_regions(of_script=False):
        torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        with pyprof.profile():
            pass
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
    assert calls == RANGE


def test_a_machine_without_roctx_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(roctx_regions, "_LIBRARIES", ("libnone-of-that-name.so",))
    with roctx_regions.torch_regions(of_script=True):
        pass
    assert "no ROCTx library" in capsys.readouterr().err
