"""A script captured by torch.profiler in this very process."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyprof import signals
from pyprof.capture import script
from pyprof.capture.request import Outcome, check_place
from pyprof.capture.window import StepCounter, ranked
from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyprof.capture.recorder import Recorder
    from pyprof.capture.request import Request

SUFFIX = ".pt.trace.json.gz"
_ENVIRONMENT = {
    "KINETO_LOG_LEVEL": "5",  # none of Kineto's own messages
    "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1",  # compiled CPU kernels appear as ops
}


def run(request: Request) -> Outcome:
    """Run the script and write NAME.pt.trace.json.gz; what it recorded until it failed, if so."""
    for variable, value in _ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    path = Path(ranked(request.output) + SUFFIX)
    check_place(path)
    try:
        from pyprof.capture.recorder import Recorder  # noqa: PLC0415 - torch is the user's own
    except ImportError as error:
        raise PyprofError(f"--tool torch needs torch in this Python: {error}") from error
    recorder = Recorder(stacks=not request.instrument)
    with ExitStack() as stack:
        if request.instrument:
            _instrument(stack)
        finish = _connect(recorder, request, stack)
        parent = os.getpid()
        code = script.run(request.target)
        if os.getpid() != parent:  # a worker that the script forked and let come back
            sys.stdout.flush()
            os._exit(code)
        with signals.postponed():
            finish()
    if not recorder.recorded:
        said = tuple(_notes(recorder, request)) if recorder.displaced else (request.nothing(),)
        return Outcome(code, None, said)
    with signals.postponed():
        kept, where = _written(recorder, path)
    return Outcome(code or int(kept != path), kept, (*where, *_notes(recorder, request)))


def _written(recorder: Recorder, path: Path) -> tuple[Path | None, list[str]]:
    """Write the file, or where there is room; give its place, and what to say of another."""
    try:
        recorder.write(path)
    except OSError as error:
        kept = getattr(error, "place", None)
        what = f"what was recorded is in {kept}" if kept else "make room, and capture again"
        return kept, [f"{path}: {error.strerror or error}; {what}"]
    return path, []


def _instrument(stack: ExitStack) -> None:
    from pyprof import instrument  # noqa: PLC0415 - it imports torch
    from pyprof.instrument.stack import begin_at  # noqa: PLC0415

    begin_at(script.execute.__code__)
    instrument.init(force=True, emit="profiler")
    stack.callback(instrument.stop)


def _connect(recorder: Recorder, request: Request, stack: ExitStack) -> Callable[[], None]:
    """Let the script's range or its steps start the recorder; give what ends it."""
    from pyprof.instrument.windows import Windows  # noqa: PLC0415 - it imports torch

    if request.steps is None:
        stack.enter_context(_script_range(recorder.start, recorder.end_of_range))
        stack.enter_context(_other_profilers(recorder))
        if request.whole:
            recorder.start(provisional=True)
        return recorder.stop
    windows = Windows(request.steps.schedule(), recorder.start, recorder.stop, recorder.prepare)
    stack.enter_context(_script_range(_ignore, _ignore))
    stack.enter_context(_other_profilers(recorder))
    count_steps(StepCounter(windows.step), stack)
    return windows.finish


def count_steps(counter: StepCounter, stack: ExitStack) -> None:
    """Tell a counter of every `pyprof.step()` and of every step of an optimizer."""
    from torch.optim.optimizer import register_optimizer_step_post_hook  # noqa: PLC0415

    from pyprof import instrument  # noqa: PLC0415

    stack.callback(instrument.range_hooks.on_step(counter.told))
    hook = register_optimizer_step_post_hook(lambda *_: counter.optimized())
    stack.callback(hook.remove)


@contextmanager
def _script_range(start: Callable[[], Any], stop: Callable[[], Any]) -> Iterator[None]:
    """Take the ways in which a script starts and stops its range, with or without a GPU.

    NVTX ranges of torch's ops cannot be on at the same time as torch.profiler, and the trace has
    what they would say: emit_nvtx does nothing.
    """
    import torch  # noqa: PLC0415
    import torch.cuda.profiler  # noqa: PLC0415

    from pyprof import instrument  # noqa: PLC0415

    places: list[tuple[Any, str, Callable[..., Any]]] = [
        (torch.cuda.profiler, "start", start),
        (torch.cuda.profiler, "stop", stop),
        (torch.autograd.profiler, "emit_nvtx", _no_ranges),
    ]
    if torch.cuda.is_available():
        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        places += [(runtime, "cudaProfilerStart", _succeed(start))]
        places += [(runtime, "cudaProfilerStop", _succeed(stop))]
    taken = [instrument.range_hooks.on_start(start), instrument.range_hooks.on_stop(stop)]
    before = [(home, name, getattr(home, name)) for home, name, _ in places]
    for home, name, ours in places:
        setattr(home, name, ours)
    try:
        yield
    finally:
        for home, name, theirs in before:
            setattr(home, name, theirs)
        for take_back in taken:
            take_back()


@contextmanager
def _other_profilers(recorder: Recorder) -> Iterator[None]:
    """Let a torch.profiler that the script starts have the field: two would end the process."""
    from torch.autograd.profiler import profile  # noqa: PLC0415

    theirs: Any = profile._prepare_trace  # noqa: SLF001 - what every way of starting one calls

    def prepare(self: object) -> None:
        recorder.give_way()
        theirs(self)

    profile._prepare_trace = prepare  # type: ignore[method-assign]  # noqa: SLF001
    try:
        yield
    finally:
        profile._prepare_trace = theirs  # type: ignore[method-assign]  # noqa: SLF001


def _succeed(callback: Callable[[], Any]) -> Callable[[], int]:
    def call() -> int:
        callback()
        return 0  # cudaSuccess

    return call


def _ignore() -> None:
    pass


def _no_ranges(*_: object, **__: object) -> nullcontext[None]:
    return nullcontext()


def _notes(recorder: Recorder, request: Request) -> Iterator[str]:
    if recorder.overflowed:
        yield (
            f"recording ended after {recorder.seconds:.1f} s: it had taken a quarter of the free "
            "memory; capture a few steps with --steps or pyprof.profile()"
        )
    if recorder.displaced:
        yield (
            f"recording ended after {recorder.seconds:.1f} s: the script started a torch.profiler "
            "of its own, and there can be only one; read the trace that it writes"
        )
    if request.whole and recorder.ranges:
        yield "the script started a range of its own: only that is captured"
    if not (recorder.displaced or recorder.overflowed):
        windows = f" in {recorder.windows} windows" if recorder.windows > 1 else ""
        yield f"recorded {recorder.seconds:.1f} s{windows}"
