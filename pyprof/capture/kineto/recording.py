"""One recording, from its triggers (the whole program, its range, or steps) to its file."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import torch
import torch.cuda.profiler
from torch.autograd.profiler import record_function
from torch.optim.optimizer import register_optimizer_step_post_hook

from pyprof import instrument
from pyprof.capture.kineto import memory_guard, memory_snapshot
from pyprof.capture.kineto.recorder import Recorder
from pyprof.capture.kineto.script_profilers import ScriptProfilers
from pyprof.capture.nsight.nvtx_ranges import NvtxRanges
from pyprof.capture.replacement import replace_attributes
from pyprof.capture.request import rank as own_rank
from pyprof.capture.request import relative_to_here, set_aside
from pyprof.instrument.ranges.capture_range import RecordingWindows
from pyprof.instrument.ranges.emit import profiler_sink
from pyprof.instrument.ranges.stack import begin_at
from pyprof.instrument.ranges.stream_capture import capturing
from pyprof.process import overwrite_guard
from pyprof.quantities import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyprof.capture.kineto.device_monitor import DeviceMonitor
    from pyprof.capture.request import Request


class Recording:
    """Records at once, or when the program's range or its steps start it."""

    def __init__(
        self,
        request: Request,
        runner: Callable[..., Any],
        *,
        share: float = memory_guard.SHARE,
        rank: Callable[[], int | None] = own_rank,
        monitor: DeviceMonitor | None = None,
    ) -> None:
        """`runner` calls the program; stacks do not reach beyond it. Others are the recorder's."""
        recorder = Recorder(
            stacks=not request.instrument,
            memory=request.memory,
            share=share,
            rank=rank,
            monitor=monitor,
        )
        self._recorder, self._request = recorder, request
        self._stack = ExitStack()
        self._threaded = False
        self.others = ScriptProfilers(
            recorder.pause, self._resume, lambda: recorder.busy, recorder.adopt
        )
        self._nvtx = NvtxRanges(profiler_sink(lambda: recorder.running, record_function))
        enter = self._stack.enter_context
        enter(self.others.watch())
        enter(self._nvtx.installed())
        enter(watch_graphs(torch.cuda.CUDAGraph, recorder.graph_begins, recorder.graph_ended))
        if not recorder.all_threads:
            enter(self._watch_threads())
        self._snapshot_notes: list[str] = []
        self._began_s = time.time()
        if request.memory:
            memory_snapshot.begin()
        if request.instrument:
            begin_at(runner.__code__)
            # our recording, or the script's own profiler if it opted in
            sink = profiler_sink(
                lambda: recorder.running or (self.others.active and instrument.for_profilers())
            )
            enter(instrument.marked(sink))
        self._end = self._connect()

    def finish(self, path: Callable[[], Path]) -> Path | None:
        """End the recording and write it to the path; return None if it is empty.

        Undoes every replacement made for the program.
        """
        if self._recorder.mine:
            self._end()
            self._recorder.discard()
        self._stack.close()
        target = path()
        written = self._recorder.write(target)
        if self._request.memory and self._recorder.mine:
            snapshot = overwrite_guard.snapshot_beside(target)
            self._snapshot_notes.append(memory_snapshot.write(snapshot))
        if written:
            self._snapshot_notes.append(set_aside(target, self._began_s))
        return target if written else None

    def notes(self) -> Iterator[str]:
        """Yield what the user should know about the recording."""
        recorder = self._recorder
        if recorder.windows and not recorder.overflowed:
            windows = f" in {recorder.windows} windows" if recorder.windows > 1 else ""
            if self._request.steps is not None:
                extent = ""
            elif recorder.in_ranges:
                extent = ": the range that the script started"
            elif self._request.whole:
                extent = ": the whole script"
            else:
                extent = ": the whole script, which started no range"
            yield f"recorded {duration(1e9 * recorder.seconds)}{windows}{extent}"
        yield from self.problems()

    def problems(self) -> Iterator[str]:
        """Yield what was not recorded, and why."""
        recorder = self._recorder
        yield from filter(None, self._snapshot_notes)
        if recorder.overflowed:
            yield (
                f"recording ended after {recorder.seconds:.1f} s: it had used a quarter of the "
                "free memory; capture a few steps with --steps or pyprof.profile()"
            )
        if self.others.count:
            yield self._describe_script_profilers()
        for failure in recorder.failures:
            yield f"torch.profiler failed, and what it had recorded is lost: {failure}"
        if recorder.windows and recorder.lacks_stacks:
            yield (
                "ops have no source lines: without pyprof.init(), torch before 2.7 records them "
                "only with --all, with --steps, or in the range that the script starts"
            )
        if recorder.lost:
            yield "the range ended on another thread, where this torch cannot end a recording"
        if self._threaded:
            yield (
                "with --memory torch records only the main thread"
                if self._request.memory
                else "this torch records only the main thread; newer versions record all threads"
            )
        if self._nvtx.used and self._nvtx.lacking:
            yield "this torch build has no NVTX; ranges of torch.cuda.nvtx are recorded without it"

    def _describe_script_profilers(self) -> str:
        cause = "the script ran its own torch.profiler, and only one can run at a time"
        adopted = self._recorder.adopted
        if adopted:
            recorded = {
                "shapes (record_shapes=True)": all(trace.shapes for trace in adopted),
                "source lines (with_stack=True)": all(trace.stacks for trace in adopted),
            }
            without = " and ".join(what for what, there in recorded.items() if not there)
            lacking = f", without {without}" if without else ""
            return f"{cause}: what it recorded is part of this capture{lacking}"
        traces = self.others.traces()
        if not traces:
            return f"{cause}: its recording was not exported (export_chrome_trace does that)"
        more = f" and {len(traces) - 1} more" if len(traces) > 1 else ""
        trace = relative_to_here(traces[-1])
        return f"{cause}; its recording is in {trace}{more}: python -m pyprof.prof {trace}"

    def _resume(self) -> None:
        if not self.others.active:
            self._recorder.resume()

    def _start(self) -> None:
        if self._recorder.mine:
            instrument.find_modules()
        self._recorder.start()

    def _connect(self) -> Callable[[], None]:
        """Let the script's range or steps start the recorder; return a function that ends it."""
        recorder, steps = self._recorder, self._request.steps
        enter = self._stack.enter_context
        if steps is None:
            ignored = self._request.whole
            start = _ignore if ignored else self._start
            enter(script_range(start, _ignore if ignored else recorder.end_of_range))
            instrument.find_modules()
            recorder.start(provisional=True, replaceable=not ignored)
            return recorder.stop
        windows = RecordingWindows(steps.schedule(), self._start, recorder.stop, recorder.prepare)
        enter(script_range(_ignore, _ignore))
        enter(count_steps(windows.step))
        return windows.finish

    def _watch_threads(self) -> AbstractContextManager[None]:
        """Note whether the program starts threads."""
        theirs = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            self._threaded = self._threaded or not thread.name.startswith("pyprof-")
            theirs(thread)

        return replace_attributes((threading.Thread, "start", start))


@contextmanager
def count_steps(ended: Callable[[], object]) -> Iterator[None]:
    """Call `ended` at the end of each step of the program, however it marks them.

    `pyprof.step()` takes precedence. Until its first call, each optimizer step counts; a program
    with two optimizers should call it. An optimizer step captured into a CUDA graph does not run:
    each replay is a step.
    """
    counts = {"program": 0, "optimizer": 0}

    def count(marked_by: str) -> None:
        counted = max(counts.values())
        counts[marked_by] += 1
        if counts[marked_by] > counted:
            ended()

    def optimized(*_: object) -> None:
        if not counts["program"] and not capturing():
            count("optimizer")

    with ExitStack() as stack:
        stack.callback(instrument.step_end.add(partial(count, "program")))
        stack.callback(register_optimizer_step_post_hook(optimized).remove)
        yield


@contextmanager
def script_range(start: Callable[[], Any], stop: Callable[[], Any]) -> Iterator[None]:
    """Intercept all ways to start and stop the script's range, with or without a GPU.

    emit_nvtx is made to do nothing: torch does not allow it together with torch.profiler, whose
    trace has the same information.
    """
    places: list[tuple[object, str, object]] = [
        (torch.cuda.profiler, "start", start),
        (torch.cuda.profiler, "stop", stop),
        (torch.autograd.profiler, "emit_nvtx", lambda *_, **__: nullcontext()),
    ]
    if torch.cuda.is_available():
        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        places += [(runtime, "cudaProfilerStart", _succeed(start))]
        places += [(runtime, "cudaProfilerStop", _succeed(stop))]
    with ExitStack() as stack:
        stack.callback(instrument.range_start.add(start))
        stack.callback(instrument.range_stop.add(stop))
        stack.enter_context(replace_attributes(*places))
        yield


def _succeed(callback: Callable[[], Any]) -> Callable[[], int]:
    def call() -> int:
        callback()
        return 0  # cudaSuccess

    return call


def _ignore() -> None:
    pass


def watch_graphs(
    graph: type, begins: Callable[[], object], ended: Callable[[], object]
) -> AbstractContextManager[None]:
    """Call back before each capture of a graph of this class begins, and after it ends.

    Everything that captures graphs uses the class, `torch.cuda.CUDAGraph`: torch.cuda.graph,
    make_graphed_callables, the trees of torch.compile. A capture that fails to begin counts as
    ended. Replays cost nothing more.
    """
    home: Any = graph
    capture_begin, capture_end = home.capture_begin, home.capture_end

    @wraps(capture_begin)
    def begin(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - torch's own
        begins()
        try:
            return capture_begin(*args, **options)
        except BaseException:
            _call_quietly(ended)
            raise

    @wraps(capture_end)
    def end(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
        try:
            result = capture_end(*args, **options)
        except BaseException:
            _call_quietly(ended)
            raise
        ended()
        return result

    return replace_attributes((home, "capture_begin", begin), (home, "capture_end", end))


def _call_quietly(ended: Callable[[], object]) -> None:
    """Call back while the script's own error propagates; that must not be hidden."""
    with suppress(Exception):
        ended()
