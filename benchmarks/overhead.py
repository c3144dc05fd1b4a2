"""What instrumentation costs: paired in one run against torch alone and torch's own tools.

    python benchmarks/overhead.py [--nsys] [--rounds N]

Two workloads on the CPU, where nothing hides the cost: `F.linear` on 8 by 8 at a stack 30 frames
deep, and the forward of a `TransformerEncoderLayer`. Each round times every way once, in turn, so
that what else the machine does falls on all alike. It can only add: shown is the quickest of all
rounds, in processor time of the one thread. Ranges end in a call that does nothing; with `--nsys`
a second process, captured by the real nsys, gives one line more, against torch alone in there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn

import pyprof
from pyprof.instrument import lifecycle
from pyprof.instrument.ranges.emit import Sink, tool_listens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

DEPTH = 30
REPEATS = 10
ALONE, LISTENING, TORCH = "torch alone", "pyprof, listening", "torch's own ranges, shapes"
UNDER_NSYS = "pyprof, nsys takes the ranges"

Times = dict[str, float]
"""Seconds of a call by the way it was called."""


def linear() -> Callable[[], object]:
    """Return a call of F.linear on 8 by 8."""
    x, weight, bias = torch.ones(8, 8), torch.ones(8, 8), torch.ones(8)
    return lambda: F.linear(x, weight, bias)


def encoder_layer() -> Callable[[], object]:
    """Return a forward of a TransformerEncoderLayer in training mode."""
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    x = torch.ones(4, 16, 64)
    return lambda: layer(x)


WORKLOADS = {"F.linear 8x8": (linear, 100), "TransformerEncoderLayer": (encoder_layer, 5)}


@contextlib.contextmanager
def pyprof_off() -> Iterator[None]:
    """Instrument with nobody listening: nothing is replaced."""
    with mock.patch.object(lifecycle, "tool_listens", return_value=False):
        pyprof.init()
        yield
        pyprof.stop()


@contextlib.contextmanager
def pyprof_on() -> Iterator[None]:
    """Instrument with a tool, or with a sink in its place that does nothing."""
    nvtx = lifecycle._SINKS["nvtx"]  # noqa: SLF001 - no tool here, and the sink must cost nothing
    if not tool_listens():
        lifecycle._SINKS["nvtx"] = lambda: Sink(lambda _: None, lambda: None)  # noqa: SLF001 - as above
    pyprof.init(force=True)
    yield
    pyprof.stop()
    lifecycle._SINKS["nvtx"] = nvtx  # noqa: SLF001 - as above


def profiler(**options: Any) -> AbstractContextManager[object]:  # noqa: ANN401 - torch's own
    """Record with torch.profiler on the CPU."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=cpu, **options)


def _nothing(device: object = None) -> None:
    """Stand in for what needs a GPU."""


@contextlib.contextmanager
def torch_ranges() -> Iterator[None]:
    """Let torch emit its own ranges with shapes: NVTX in CUDA builds, else the like for VTune."""
    if not hasattr(torch._C, "_nvtx"):  # noqa: SLF001 - says how torch was built
        with torch.autograd.profiler.emit_itt(record_shapes=True):
            yield
        return
    synchronize = torch.cuda.synchronize  # needs a GPU; the ranges do not
    torch.cuda.synchronize = synchronize if torch.cuda.is_available() else _nothing
    with torch.autograd.profiler.emit_nvtx(record_shapes=True):
        yield
    torch.cuda.synchronize = synchronize


WAYS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    ALONE: contextlib.nullcontext,
    "pyprof, nobody listens": pyprof_off,
    LISTENING: pyprof_on,
    TORCH: torch_ranges,
    "torch.profiler": profiler,
    "torch.profiler, shapes and stacks": lambda: profiler(record_shapes=True, with_stack=True),
}


def deep(depth: int, function: Callable[[], float]) -> float:
    """Call a function at a stack this much deeper."""
    return deep(depth - 1, function) if depth else function()


def seconds_per_call(call: Callable[[], object], count: int) -> float:
    """Time calls in a row, at the depth, on the processor: the best of several."""

    def timed() -> float:
        times = []
        for _ in range(REPEATS):
            start = time.thread_time()  # the calls wait for nothing
            for _ in range(count):
                call()
            times.append((time.thread_time() - start) / count)
        return min(times)

    return deep(DEPTH, timed)


def measure(call: Callable[[], object], count: int, rounds: int, ways: Iterable[str]) -> Times:
    """Return the seconds of a call each way, the quickest of all rounds."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way in best:
            with WAYS[way]():
                best[way] = min(best[way], seconds_per_call(call, count))
    return best


def measure_all(rounds: int, ways: Iterable[str]) -> dict[str, Times]:
    """Measure every workload."""
    torch.set_num_threads(1)
    return {
        name: measure(workload(), count, rounds, ways)
        for name, (workload, count) in WORKLOADS.items()
    }


def measure_under_nsys(rounds: int) -> dict[str, Times]:
    """Measure with and without instrumentation in a process that nsys captures."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder, "times.json")
        command: list[str | Path] = [
            "nsys", "profile", "-t", "nvtx", "-s", "none", "--cpuctxsw=none",
            "-o", Path(folder, "capture"),
            sys.executable, __file__, "--rounds", str(rounds), "--into", times,
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        except FileNotFoundError:
            sys.exit("--nsys needs nsys on the PATH")
        if not times.exists():
            sys.exit(f"nsys captured nothing:\n{done.stdout}{done.stderr}")
        found: dict[str, Times] = json.loads(times.read_text())
        return found


def line(way: str, taken: float, alone: float) -> str:
    """Return a line of the table: microseconds, how many more than alone, and the ratio."""
    return f"  {way:34}{taken * 1e6:8.1f}{(taken - alone) * 1e6:8.1f}{taken / alone:7.2f}"


def main() -> None:
    """Print a table for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--nsys", action="store_true", help="also in a process that nsys captures")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.into:  # the process that nsys captures
        args.into.write_text(json.dumps(measure_all(args.rounds, (ALONE, LISTENING))))
        return
    print(f"torch {torch.__version__}, stack {DEPTH} deep, {args.rounds} rounds,", end=" ")
    print("load {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()), f"on {os.cpu_count()} cores")
    captured = measure_under_nsys(args.rounds) if args.nsys else {}
    for name, times in measure_all(args.rounds, WAYS).items():
        print(f"\n{name:36}      us   added  times")
        for way, taken in times.items():
            print(line(way, taken, times[ALONE]))
            if way == LISTENING and captured:
                print(line(UNDER_NSYS, captured[name][LISTENING], captured[name][ALONE]))


if __name__ == "__main__":
    main()
