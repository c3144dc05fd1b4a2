"""Shared fixtures: a sink that records, and a check that torch is restored."""

import threading
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from pyprof import marker
from pyprof.instrument import lifecycle
from pyprof.instrument.ops.op import isinstance_op
from pyprof.instrument.ranges import emit, open_ranges, timers
from pyprof.instrument.wrap import WRAPPED


class Recorder:
    """A sink that writes down what is pushed: (depth, text) in order, by thread."""

    def __init__(self) -> None:
        self._local = threading.local()
        self.pushed: list[tuple[int, str]] = []
        self.depths: dict[int, int] = {}

    @property
    def depth(self) -> int:
        """How many ranges this thread has open."""
        return self.depths.get(threading.get_ident(), 0)

    def push(self, text: str) -> None:
        self.pushed.append((self.depth, text))
        self.depths[threading.get_ident()] = self.depth + 1

    def pop(self) -> None:
        assert self.depth > 0, "a range was closed that nobody opened"
        self.depths[threading.get_ident()] -= 1

    def clear(self) -> None:
        self.pushed.clear()

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.pushed]

    @property
    def calls(self) -> list[marker.Call]:
        found = (marker.decode_op(t) for t in self.texts if marker.classify(t) is marker.Kind.OP)
        return [call for call in found if call is not None]

    @property
    def ops(self) -> list[str]:
        return [call.op for call in self.calls]

    @property
    def layers(self) -> list[str]:
        return [t.removeprefix("layer:") for t in self.texts if t.startswith("layer:")]

    @property
    def traces(self) -> list[tuple[str, ...]]:
        return [marker.decode_trace(t) for t in self.texts if t.startswith("{'traceMarker'")]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Take the place of NVTX; every range must be closed at the end, on every thread."""
    recorder = Recorder()
    sink = emit.Sink(recorder.push, recorder.pop)
    monkeypatch.setitem(lifecycle._SINKS, "nvtx", lambda: sink)
    yield recorder
    lifecycle.stop()
    assert set(recorder.depths.values()) <= {0}
    assert not open_ranges.THREAD.here.open


@pytest.fixture
def listening(recorder: Recorder) -> Recorder:
    """Instrument torch; return what writes down its ranges."""
    lifecycle.init(force=True)
    recorder.clear()
    return recorder


@pytest.fixture(autouse=True)
def _torch_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(timers, "_BOOK", timers._Book())  # examples may have timed something
    yield
    lifecycle.stop()
    WRAPPED.clear()
    for home in (torch, torch.Tensor, torch.nn.functional, torch.linalg, torch._C._nn):
        assert not [name for name, value in vars(home).items() if isinstance_op(value)]
