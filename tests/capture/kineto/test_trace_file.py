"""Recording windows become one complete trace."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pyprof.capture.kineto.trace_file import join_trace_windows, write_trace


@pytest.mark.parametrize("text", ["", "{", '{"traceEvents": [{"ph": "X"'])
def test_a_truncated_trace_is_not_kept(text: str, tmp_path: Path) -> None:
    """torch.profiler does not report a full disk."""
    (tmp_path / "plain.json").write_text(text)
    with pytest.raises(OSError, match="could not write its whole trace"):
        join_trace_windows([tmp_path / "plain.json"], io.BytesIO())


def test_the_folder_for_temporary_files_may_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the script chose a folder of its own, and removed it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        torch.ones(3).exp()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert write_trace([recorded], tmp_path / "net.pt.trace.json.gz")


def test_fields_after_the_events_of_the_first_window_are_kept(tmp_path: Path) -> None:
    """Older torch writes the base of times there."""
    text = '{"traceEvents": [{"name": "a"}], "traceName": "x", "baseTimeNanoseconds": 7}'
    (tmp_path / "plain.json").write_text(text)
    told, target = [], io.BytesIO()

    def more(process: bytes) -> bytes:
        told.append(process)
        return b', {"name": "b"}'

    join_trace_windows([tmp_path / "plain.json"], target, more=more)
    assert [b'"baseTimeNanoseconds": 7' in process for process in told] == [True]
    assert json.loads(target.getvalue())["traceEvents"] == [{"name": "a"}, {"name": "b"}]
