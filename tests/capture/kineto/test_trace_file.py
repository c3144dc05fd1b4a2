"""Recording windows become one complete trace."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")

from pyprof.capture.kineto.trace_file import join_trace_windows
from pyprof.capture.request import Outcome

if TYPE_CHECKING:
    Capture = Callable[..., Outcome]


@pytest.mark.parametrize("text", ["", "{", '{"traceEvents": [{"ph": "X"'])
def test_a_trace_that_is_cut_short_is_not_kept(text: str, tmp_path: Path) -> None:
    """torch.profiler does not say that a disk is full."""
    (tmp_path / "plain.json").write_text(text)
    with pytest.raises(OSError, match="could not write its whole trace"):
        join_trace_windows([tmp_path / "plain.json"], io.BytesIO())


def test_what_the_first_says_behind_its_events_is_told(tmp_path: Path) -> None:
    """There older torch says from when on times count."""
    text = '{"traceEvents": [{"name": "a"}], "traceName": "x", "baseTimeNanoseconds": 7}'
    (tmp_path / "plain.json").write_text(text)
    told, target = [], io.BytesIO()

    def more(process: bytes) -> bytes:
        told.append(process)
        return b', {"name": "b"}'

    join_trace_windows([tmp_path / "plain.json"], target, more)
    assert [b'"baseTimeNanoseconds": 7' in process for process in told] == [True]
    assert json.loads(target.getvalue())["traceEvents"] == [{"name": "a"}, {"name": "b"}]
