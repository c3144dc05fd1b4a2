"""Write a capture of a training run that never happened, and say what is in it.

    python benchmarks/generate.py OUT.sqlite|OUT.db [--kernels N] [--ranks R] [--blocks B]
        [--texts new|old] [--long N] [--bystander] [--leaks N]

The network is a stack of feed-forward blocks in half precision (see network.py), marked as
`pyprof.init()` and `emit_nvtx` mark it. `.sqlite` is an export of nsys, `.db` a rocpd
file. What is printed is the truth, as JSON, counted while it was written: a parser that agrees with
it lost nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import network
from nsys_file import NsysFile, Where, process_id, thread_id
from rocpd_file import RocpdFile

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAUNCH_NS = 4000
_COMPUTE, _COMM = 7, 20  # streams
_LONG = 6
"""Frames of a stack, and inputs of an op, for each time that texts are to be longer."""


class Rank:
    """One process of the run: its threads, its clock, its GPU."""

    def __init__(
        self, file: NsysFile | RocpdFile, number: int, options: argparse.Namespace
    ) -> None:
        pid = 4200 + number
        self.file, self.device, self.options = file, number, options
        self.process = process_id(pid)
        self.forward, self.backward, self.loader = (
            thread_id(pid, pid + place) for place in (0, 57, 58)
        )
        self.now = 1_000_000 + 700 * number  # ns; ranks never start at quite the same time
        self.free = dict.fromkeys((_COMPUTE, _COMM), 0)  # when each stream is done
        self.corr = itertools.count(1)  # restarts in each process
        self.seq = itertools.count()
        self.op_id = itertools.count(1)
        self.truth: Counter[str] = Counter()

    # --- what a thread does -------------------------------------------------------------------

    @contextmanager
    def range(self, text: str, thread: int) -> Iterator[None]:
        """Run the body inside a range."""
        start = self.now
        self.now += 300
        yield
        self.now += 200
        self.file.range(start, self.now, text, thread)

    def submit(self, api: str, thread: int, stream: int, duration_ns: int) -> Where:
        """Call the runtime; return the columns of the GPU work that this starts."""
        corr = next(self.corr)
        self.file.call(self.now, self.now + _LAUNCH_NS, thread, corr, api)
        start = max(self.now + _LAUNCH_NS + 1500, self.free[stream])
        self.free[stream] = start + duration_ns
        self.now += _LAUNCH_NS + 300
        self.truth["activities"] += 1
        self.truth["gpu_ns"] += duration_ns
        return Where(start, start + duration_ns, self.device, stream, corr, self.process)

    def launch(self, kernel: network.Kernel, thread: int, stream: int = _COMPUTE) -> None:
        """Launch a kernel."""
        where = self.submit("cudaLaunchKernel_v7000", thread, stream, kernel.duration_ns)
        self.file.kernel(where, kernel)
        self.truth["kernels"] += 1
        self.truth["kernel_ns"] += kernel.duration_ns

    def text(self, name: str, seq: int | None, sizes: tuple[network.Shape, ...] | None) -> str:
        """Format a range of emit_nvtx, as PyTorch did before 2022 or as it does since."""
        old = self.options.texts == "old"
        parts = [name.removeprefix("aten::") if old else name]
        if seq is not None:
            parts.append(f"seq = {seq}")
        op_id = next(self.op_id)
        if not old:
            parts.append(f"op_id = {op_id}")
        if sizes is not None:
            parts.append(f"sizes = {[list(shape) for shape in sizes]}")
        if makers := [max(op_id - back, 0) for back in range(_LONG * (self.options.long - 1))]:
            parts.append(f"input_op_ids = [{', '.join(f'({maker},0)' for maker in makers)}]")
        return ", ".join(parts)

    # --- a step -------------------------------------------------------------------------------

    def step(self, number: int) -> None:
        """Train on one batch."""
        with self.range(f"step {number}", self.forward):
            where = self.submit("cudaMemcpyAsync_v3020", self.forward, _COMPUTE, 350_000)
            self.file.copy_to_device(where, network.BATCH_BYTES)
            where = self.submit("cudaMemsetAsync_v3020", self.forward, _COMPUTE, 1_200)
            self.file.clear(where, 4096)
            done: list[tuple[network.Op, int]] = []
            for block in range(self.options.blocks):
                with self.range(f"layer:blocks.{block}", self.forward):
                    done += [(op, self.call(op)) for op in network.BLOCK]
            done.append((network.LOSS, self.call(network.LOSS)))
            for op, seq in reversed(done):
                self.gradient(op, seq)
            if self.options.ranks > 1:
                with self.range("ncclDevKernel_AllReduce", self.backward):
                    self.launch(network.ALL_REDUCE, self.backward, _COMM)
            with self.range("Optimizer.step#SGD.step", self.forward):
                for _ in range(2):
                    with self.range(self.text("aten::_foreach_add_", None, None), self.forward):
                        self.launch(network.UPDATE, self.forward)
        if self.options.bystander:
            self.load_batch(number)

    def call(self, op: network.Op) -> int:
        """Run an op forward; return its sequence number."""
        seq = next(self.seq)
        with (
            self.range(op.trace(_LONG * (self.options.long - 1)), self.forward),
            self.range(op.marker, self.forward),
            self.range(self.text(op.aten, seq, op.sizes), self.forward),
        ):
            for kernel in op.forward:
                self.launch(kernel, self.forward)
        self.truth["linear_flops"] += op.flops
        return seq

    def gradient(self, op: network.Op, seq: int) -> None:
        """Run an op's backward node on the autograd thread."""
        if self.options.texts == "old":
            with self.range(self.text(f"{op.node}Backward", seq, None), self.backward):
                self.gradient_kernels(op)
            return
        node = f"{op.node}Backward0"
        with (
            self.range(
                self.text(f"autograd::engine::evaluate_function: {node}", seq, None), self.backward
            ),
            self.range(self.text(node, seq, None), self.backward),
        ):
            self.gradient_kernels(op)

    def gradient_kernels(self, op: network.Op) -> None:
        """Launch what a backward node launches, inside the ops that it calls, if it calls any."""
        for kernel in op.backward:
            if kernel.aten:
                with self.range(self.text(kernel.aten, None, kernel.sizes), self.backward):
                    self.launch(kernel, self.backward)
            else:
                self.launch(kernel, self.backward)

    # --- what else a capture holds ------------------------------------------------------------

    def load_batch(self, number: int) -> None:
        """Annotate a thread that launches nothing, with as many ranges as the step has ops."""
        span = 4 * self.options.blocks
        for place in range(span):
            start = self.now - 5000 * (span - place)
            self.file.range(start, start + 4000, f"batch {number} item {place}", self.loader)

    def leak(self, count: int, begun: int) -> None:
        """Leave ranges open around all that the forward thread did, as a wrapped raise does."""
        text = repr({"mod": "torch", "op": "__getattr__", "args": [
            {"name": "", "type": "str", "value": "extra_repr"}]})  # fmt: skip
        for place in range(count):
            self.file.range(begun + place, self.now + 1000, text, self.forward)


def write(path: Path, options: argparse.Namespace) -> dict[str, int]:
    """Write the capture; return what is in it."""
    truth: Counter[str] = Counter()
    form = RocpdFile if path.suffix == ".db" else NsysFile
    with form(path) as file:
        ranks = [Rank(file, number, options) for number in range(options.ranks)]
        begun = [rank.now - 10_000 for rank in ranks]
        for rank in ranks:
            file.gpu(rank.device, "NVIDIA A100-SXM4-40GB", 108, 1_410_000_000, 1_555_200_000_000)
        steps = 0
        while not steps or sum(rank.truth["kernels"] for rank in ranks) < options.kernels:
            for rank in ranks:
                rank.step(steps)
            steps += 1
        for rank, start in zip(ranks, begun, strict=True):
            rank.leak(options.leaks, start)
            truth.update(rank.truth)
        truth.update(steps=steps, ranges=file.written["NVTX_EVENTS"])
    return dict(truth)


def main() -> None:
    """Write the file that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--kernels", type=int, default=60, help="whole steps, until there are so many"
    )
    parser.add_argument("--ranks", type=int, default=1, help="processes in the one file")
    parser.add_argument("--blocks", type=int, default=2, help="depth of the network")
    parser.add_argument(
        "--texts", choices=["new", "old"], default="new", help="spelling of emit_nvtx"
    )
    parser.add_argument(
        "--long", type=int, default=1, help="how many times as long texts are, about"
    )
    parser.add_argument("--bystander", action="store_true", help="a thread that launches nothing")
    parser.add_argument("--leaks", type=int, default=0, help="ranges around everything, a rank")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    print(json.dumps(write(options.out, options)))


if __name__ == "__main__":
    main()
