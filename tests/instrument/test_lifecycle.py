import subprocess
import sys
from types import FunctionType
from typing import Any

import pytest
import torch
import torch.distributed
import torch.nn.functional as F  # noqa: N812 - everyone calls it so

import pyprof
from pyprof.instrument import lifecycle
from pyprof.instrument.ops.op import isinstance_op
from tests.instrument.conftest import Recorder

HOMES: tuple[Any, ...] = (
    *(torch, torch.Tensor, torch.functional, F, torch.linalg, torch.fft, torch.special),
    *(torch.nn.Module, torch.nn.utils, torch.nn.utils.clip_grad, torch.distributed),
    *(torch.optim.Optimizer, torch.optim.SGD),
)


def snapshot() -> dict[tuple[int, str], tuple[Any, ...]]:
    """Return the identity of every attribute of every home, and of the insides of functions."""
    return {
        (number, name): (id(value), *inside(value))
        for number, home in enumerate(HOMES)
        for name, value in vars(home).items()
    }


def inside(value: object) -> list[object]:
    return [id(value.__code__), *vars(value)] if type(value) is FunctionType else []


def test_stop_restores_every_attribute_to_the_identical_object(recorder: Recorder) -> None:
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])
    before = snapshot()
    pyprof.init(force=True)
    assert snapshot() != before
    assert isinstance_op(torch.relu)
    pyprof.stop()
    assert snapshot() == before
    assert recorder.depth == 0


def test_init_is_idempotent(recorder: Recorder) -> None:
    pyprof.init(force=True)
    first = snapshot()
    pyprof.init(force=True)
    pyprof.init()
    assert snapshot() == first
    recorder.clear()
    torch.ones(1)
    assert recorder.ops == ["ones"]
    pyprof.stop()
    pyprof.stop()


def test_without_a_tool_nothing_is_replaced(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "tool_listens", lambda: False)
    before = snapshot()
    pyprof.init()
    assert snapshot() == before
    assert pyprof.enabled()
    assert not lifecycle.listening()
    with pyprof.annotate("free"):
        torch.ones(1)
    assert recorder.texts == []
    pyprof.stop()
    assert not pyprof.enabled()


@pytest.mark.parametrize(
    ("listens", "forced"),
    [(True, [False]), (False, [False, True, False])],
    ids=["with a tool", "a script's own init does not undo earlier ones"],
)
def test_a_tool_or_force_is_enough(
    *, listens: bool, forced: list[bool], recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "tool_listens", lambda: listens)
    for force in forced:
        pyprof.init(force=force)
    recorder.clear()
    torch.ones(2)
    assert recorder.ops == ["ones"]


def test_options_leave_out_stacks_and_layers(recorder: Recorder) -> None:
    pyprof.init(force=True, stack=False, layers=False)
    torch.nn.ReLU()(torch.ones(1))
    assert recorder.traces == []
    assert recorder.layers == []
    assert recorder.ops == ["ones", "relu", "relu"]


def test_an_unknown_way_to_emit_is_refused() -> None:
    with pytest.raises(ValueError, match="nvtx, profiler"):
        pyprof.init(emit="smoke")  # type: ignore[arg-type]
    assert not pyprof.enabled()


@pytest.mark.long
def test_init_is_silent() -> None:
    code = (
        "import pyprof; pyprof.init(force=True); import torch; torch.ones(1).add(1); pyprof.stop()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("asked", [True, False])
def test_the_old_keyword_works_with_a_warning(recorder: Recorder, *, asked: bool) -> None:
    with pytest.warns(DeprecationWarning, match=r"init\(stack=") as said:
        pyprof.init(force=True, enable_function_stack=asked)
    assert said[0].filename == __file__
    torch.ones(1)
    assert bool(recorder.traces) is asked
