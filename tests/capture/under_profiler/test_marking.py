"""Markers of a script under nsys: on in its processes, off during its own profiler."""

import multiprocessing
import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pyprof import instrument
from pyprof.capture.child_captures import replaced_run
from pyprof.capture.under_profiler.marking import Marked, _emit, mark_process


def _listening() -> bool:
    return instrument.listening()


def test_a_process_has_markers_while_it_runs() -> None:
    run = pickle.loads(pickle.dumps(Marked(_listening)))  # noqa: S301 - our own
    assert run() is True
    assert not instrument.listening()


@pytest.mark.parametrize(("how", "marked"), [("spawn", True), ("fork", False)])
def test_processes_that_nsys_follows_have_markers(
    monkeypatch: pytest.MonkeyPatch, how: str, *, marked: bool
) -> None:
    """It does not follow a bare fork."""
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {how} here")
    started: list[bool] = []
    monkeypatch.setattr(
        multiprocessing.process.BaseProcess,
        "start",
        lambda process: started.append(isinstance(process.run, Marked)),
    )
    with replaced_run(mark_process):
        context: Any = multiprocessing.get_context(how)
        context.Process(target=_listening).start()
    assert started == [marked]


def test_torch_emits_no_ranges_while_the_scripts_profiler_is_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    @contextmanager
    def emit_nvtx(**_: object) -> Iterator[None]:
        told.append("on")
        yield
        told.append("off")

    monkeypatch.setattr(torch.autograd.profiler, "emit_nvtx", emit_nvtx)
    with ExitStack() as stack:
        _emit(stack)
        with torch.autograd.profiler.emit_nvtx():  # the script's own does nothing: it is on
            told.append("script")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            told.append("profiler")
        told.append("script")
    assert told == ["on", "script", "off", "profiler", "on", "script", "off"]
    assert torch.autograd.profiler.emit_nvtx is emit_nvtx
