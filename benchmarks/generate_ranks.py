"""Write the captures of a distributed run that never happened, one nsys file a rank.

    python benchmarks/generate_ranks.py FOLDER [--ranks 64] [--kernels 60] [--blocks 2]
        [--straggler RANK] [--slow-pair RANK] [--corrupt RANK] [--told WHERE]

Ranks train the network of network.py in pairs that share each block (tensor parallel), and all
join their gradients (data parallel). Planted: a rank that computes longer, a pair whose link is
slow, hosts whose clocks differ, a file that is cut short. What is printed is the truth, as JSON.
"""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import network
from generate import Rank
from nsys_file import NsysFile, Where

if TYPE_CHECKING:
    from collections.abc import Generator

_HOST = 8  # GPUs of a host
_PAIR = 2
_TENSOR, _DATA = 21, 20  # streams
_GAP_NS = 1500
_LEAVE_NS = 3000  # ranks leave a collective within so much
_TRANSFER_NS = {_TENSOR: 60_000, _DATA: 180_000}
_STRAGGLER_NS = 1_000_000  # a step
_SLOW = 3  # times
_CUT_BYTES = 5000

_SUM = network.Kernel(
    network.ALL_REDUCE.name.replace("RING", "TREE"), 0, network.ALL_REDUCE.grid, (544, 1, 1)
)


class Arrival(NamedTuple):
    """A rank that is ready for a collective; it is sent the time when that ends."""

    stream: int
    ready_ns: int


class Member(Rank):
    """A rank that waits for others. Its times are on the clock of its host."""

    def __init__(self, file: NsysFile, number: int, options: argparse.Namespace) -> None:
        super().__init__(file, number, options)
        self.number = number
        self.device = number % _HOST
        self.offset_ns = offset_ns(number)
        self.now += self.offset_ns
        self.free = dict.fromkeys((7, _DATA, _TENSOR), 0)
        self.extra_ns = 0  # of each kernel
        file.gpu(self.device, "NVIDIA A100-SXM4-40GB", 108, 1_410_000_000, 1_555_200_000_000)

    def launch(self, kernel: network.Kernel, thread: int, stream: int = 7) -> None:
        """Launch a kernel; no two take quite the same time."""
        uneven = kernel.duration_ns * noise(self.number, self.truth["kernels"]) // 50_000
        longer = kernel.duration_ns + uneven + self.extra_ns
        super().launch(replace(kernel, duration_ns=longer), thread, stream)

    def join(
        self, stream: int, tensor: network.Shape, thread: int
    ) -> Generator[Arrival, int, None]:
        """Take part in an all-reduce, which nothing is computed beside."""
        group = "world" if stream == _DATA else f"pair {self.number // _PAIR}"
        marker: dict[str, object] = {
            "mod": "torch.distributed",
            "op": "all_reduce",
            "args": [{"name": "", "type": "tensor", "shape": tensor, "dtype": "float16"}],
        }
        if self.options.told == "markers":
            marker["collective"] = self.described(stream, tensor)
        kernel = network.ALL_REDUCE if stream == _DATA else _SUM
        with (
            self.range(repr(marker), thread),
            self.range("nccl:all_reduce", thread),
        ):
            begun, corr = self.now, next(self.corr)
            called = begun + 400
            self.file.call(called, called + 4000, thread, corr, "cudaLaunchKernelExC_v11060")
            self.now += 5000
            if self.options.told == "payloads":
                payload = {
                    "NCCL communicator ID": communicator(group),
                    "Message size [bytes]": 2 * tensor[0] * tensor[1],
                }
                self.file.range(begun, self.now, "ncclAllReduce", thread, json.dumps(payload))
            ready = max(called + 4000 + _GAP_NS, *self.free.values())
            end = yield Arrival(stream, ready - self.offset_ns)
        end += self.offset_ns + noise(self.number, corr) * _LEAVE_NS // 1000
        self.free = dict.fromkeys(self.free, end)
        self.file.kernel(Where(ready, end, self.device, stream, corr, self.process), kernel)
        self.truth["kernels"] += 1
        self.truth["activities"] += 1

    def described(self, stream: int, tensor: network.Shape) -> dict[str, object]:
        """Describe an all-reduce as PyProf's markers do; groups are named as torch names them."""
        pair = self.number // _PAIR
        first, size = (0, self.options.ranks) if stream == _DATA else (pair * _PAIR, _PAIR)
        ranks, count = range(first, first + size), tensor[0] * tensor[1]
        return {
            "group": "0" if stream == _DATA else str(1 + pair),
            "ranks": str(ranks if size > _PAIR else [*ranks]),
            "size": size,
            "dtype": "float16",
            "in": count,
            "out": count,
        }

    def train(self, number: int) -> Generator[Arrival, int, None]:
        """Train on one batch."""
        activations = (network.TOKENS, network.WIDTH)
        with self.range(f"step {number}", self.forward):
            done: list[list[tuple[network.Op, int]]] = []
            for block in range(self.options.blocks):
                with self.range(f"layer:blocks.{block}", self.forward):
                    done.append([(op, self.call(op)) for op in network.BLOCK])
                    yield from self.join(_TENSOR, activations, self.forward)
            self.gradient(network.LOSS, self.call(network.LOSS))
            for calls in reversed(done):
                first, *rest = calls
                for op, seq in reversed(rest):
                    self.gradient(op, seq)
                yield from self.join(_TENSOR, activations, self.backward)
                self.gradient(*first)
            yield from self.join(_DATA, (network.HIDDEN, network.WIDTH), self.backward)
            with self.range("Optimizer.step#SGD.step", self.forward):
                for _ in range(2):
                    with self.range(self.text("aten::_foreach_add_", None, None), self.forward):
                        self.launch(network.UPDATE, self.forward)


def noise(*numbers: int) -> int:
    """Return a number from 0 to 999 that is determined by these alone."""
    found = 12345
    for number in numbers:
        found = (found * 1_103_515_245 + number * 2_654_435_761 + 12_345) & 0x7FFFFFFF
        found ^= found >> 13
    return found % 1000


def offset_ns(rank: int) -> int:
    """Return how far a host's clock is ahead of the first host's: up to a second."""
    host = rank // _HOST
    return 0 if not host else (noise(host, 7) - 500) * 2_000_003


def communicator(group: str) -> int:
    """Return a process group's id, as long as those of NCCL."""
    return 1 << 60 | crc32(group.encode())


def write(folder: Path, options: argparse.Namespace) -> dict[str, object]:
    """Write the captures; return what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"net.rank{number}.sqlite" for number in range(options.ranks)]
    with ExitStack() as files:
        ranks = [
            Member(files.enter_context(NsysFile(path, batch=1000)), number, options)
            for number, path in enumerate(paths)
        ]
        computing = options.blocks * 13 + 5  # kernels of a step that are no collectives
        ranks[options.straggler].extra_ns = _STRAGGLER_NS // computing
        steps = 0
        while ranks[0].truth["kernels"] < options.kernels:
            together([rank.train(steps) for rank in ranks], options)
            steps += 1
    if options.corrupt is not None:
        whole = paths[options.corrupt].read_bytes()
        paths[options.corrupt].write_bytes(whole[:_CUT_BYTES])
    slow = options.slow_pair // _PAIR * _PAIR
    collectives = 2 * options.blocks
    return {
        "ranks": options.ranks,
        "kernels": ranks[0].truth["kernels"],
        "steps": steps,
        "collectives": steps * (collectives + 1),
        "straggler": options.straggler,
        "straggler_ns_per_step": ranks[options.straggler].extra_ns * computing,
        "slow_pair": [slow, slow + 1],
        "transfer_ns": _TRANSFER_NS[_TENSOR],
        "slow_transfer_ns": _TRANSFER_NS[_TENSOR] * _SLOW,
        "world_transfer_ns": _TRANSFER_NS[_DATA],
        "pair_bytes": 2 * network.TOKENS * network.WIDTH,
        "offsets_ns": [rank.offset_ns for rank in ranks],
        "leave_ns": _LEAVE_NS,
        "corrupt": None if options.corrupt is None else str(paths[options.corrupt]),
    }


def together(ranks: list[Generator[Arrival, int, None]], options: argparse.Namespace) -> None:
    """Run a step on all ranks, in lockstep from collective to collective."""
    arrived = [next(rank) for rank in ranks]
    while arrived:
        ends = _ends(arrived, options)
        following = [_go_on(rank, end) for rank, end in zip(ranks, ends, strict=True)]
        arrived = [arrival for arrival in following if arrival is not None]


def _go_on(rank: Generator[Arrival, int, None], end: int) -> Arrival | None:
    """Run a rank until its next collective; None if its step is over."""
    try:
        return rank.send(end)
    except StopIteration:
        return None


def _ends(arrived: list[Arrival], options: argparse.Namespace) -> list[int]:
    """End each group's collective once the last rank has arrived and the data has been moved."""
    stream = arrived[0].stream
    size = _PAIR if stream == _TENSOR else len(arrived)
    ends: list[int] = []
    for first in range(0, len(arrived), size):
        group = arrived[first : first + size]
        slow = stream == _TENSOR and first == options.slow_pair // _PAIR * _PAIR
        transfer = _TRANSFER_NS[stream] * (_SLOW if slow else 1)
        ends += [max(one.ready_ns for one in group) + transfer] * len(group)
    return ends


def main() -> None:
    """Write the files that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--ranks", type=int, default=64, help="files; an even number")
    parser.add_argument(
        "--kernels", type=int, default=60, help="whole steps, until a rank has so many"
    )
    parser.add_argument("--blocks", type=int, default=2, help="depth of the network")
    parser.add_argument("--straggler", type=int, default=13, help="this rank computes 1 ms longer")
    parser.add_argument("--slow-pair", type=int, default=40, help="this rank's pair is slow")
    parser.add_argument("--corrupt", type=int, help="this rank's file is cut short")
    parser.add_argument(
        "--told",
        choices=("payloads", "markers", "nowhere"),
        default="payloads",
        help="groups: by NCCL, by PyProf, or not",
    )
    options = parser.parse_args()
    if options.ranks < _PAIR or options.ranks % _PAIR:
        parser.error("--ranks: an even number")
    if not 0 <= options.straggler < options.ranks > (options.corrupt or 0):
        parser.error("--straggler and --corrupt: one of the ranks, from 0")
    options.texts, options.long = "new", 1
    print(json.dumps(write(options.out, options)))


if __name__ == "__main__":
    main()
