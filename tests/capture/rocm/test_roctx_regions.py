"""Under rocprofv3 the script's ranges are those of ROCTx, and as before afterwards."""

import pytest
import torch.cuda.profiler

import pyprof
from pyprof.capture.rocm import roctx_regions


def test_ranges_resume_and_pause_the_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of torch.cuda.profiler and of pyprof.profile(), for all threads."""
    calls: list[tuple[str, int]] = []

    def resume(thread: int) -> None:
        calls.append(("resume", thread))

    def pause(thread: int) -> None:
        calls.append(("pause", thread))

    monkeypatch.setattr(roctx_regions, "_calls", lambda: (resume, pause))
    before = torch.cuda.profiler.start
    with roctx_regions.torch_regions():
        torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
        with pyprof.profile():
            assert len(calls) == 3
    assert calls == [("resume", 0), ("pause", 0)] * 2
    assert torch.cuda.profiler.start is before
    with pyprof.profile():
        assert len(calls) == 4


def test_a_machine_without_roctx_is_said_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(roctx_regions, "_LIBRARIES", ("libnone-of-that-name.so",))
    with roctx_regions.torch_regions():
        pass
    assert "no ROCTx library" in capsys.readouterr().err
