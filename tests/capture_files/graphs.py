"""Random captures of CUDA graphs as exported by nsys, with the true op of each kernel."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice
from random import Random

from pyprof.marker import Call, Tensor, encode_layer, encode_op
from tests.capture_files.model import Node, Range, Work

_KERNELS = ("gemm_128x64", "gemm_64x64", "gemm_128x64_splitk")  # names repeat between ops
_INSTANTIATE = "cudaGraphInstantiateWithFlags_v11040"
_KINDS = ("kernel", "kernel", "kernel", "memcpy", "memset")


@dataclass(frozen=True)
class Planted:
    """What a kernel works for: the truth that parsing is to find."""

    layer: str
    size: int
    """Of its product, (size, 8) by (8, size); no other has it."""

    @property
    def flops(self) -> int:
        return 2 * self.size * self.size * 8


_Graph = list[tuple[int, Planted, str, str, int]]
"""Its nodes, in the order of capture: id, op, kind and name of each, and stream."""


@dataclass
class Scenario:
    """A capture and, per piece of work (by its start), what it works for."""

    work: list[Work] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    calls: list[Work] = field(default_factory=list)
    """API calls that launch no work."""
    truth: dict[int, Planted] = field(default_factory=dict)
    replay: dict[int, int] = field(default_factory=dict)
    """The correlation id of the launch of each piece of replayed work, with its process."""


def scenario(random: Random) -> Scenario:
    """Make one of a few processes with similar graphs, ids and times."""
    made = Scenario()
    clock = count(10, 10)  # the same for all: so starts are unique
    for pid in range(1, random.randint(1, 3) + 1):
        _Process(random, made, clock, pid).run()
    return made


class _Process:
    def __init__(self, random: Random, made: Scenario, clock: Iterator[int], pid: int) -> None:
        self._random, self._made, self._clock, self._pid = random, made, clock, pid
        self._id = self._corr = 0  # in each process from the start: ids are of a process
        self._ops = 0

    def run(self) -> None:
        """Capture graphs, derive others, and replay them between eager ops."""
        random = self._random
        graphs = [self._captured() for _ in range(random.randint(1, 3))]
        if random.random() < 0.5:
            graphs.append(self._parent(graphs))
        runnable = []
        for graph in graphs:
            for _ in range(random.randint(1, 2)):  # instantiated again, or a clone instantiated
                copy = graph
                for _ in range(random.randint(1, 3)):
                    copy = self._copied(copy)
                runnable.append(copy)
        for _ in range(random.randint(1, 5)):
            if random.random() < 0.3:
                self._eager()
            self._replayed(random.choice(runnable))

    def _thread(self) -> int:
        return 10 * self._pid + self._random.randint(1, 2)

    def _op(self, tid: int) -> tuple[Planted, int]:
        """Begin an op in a layer of its own; return it, and where its ranges stand."""
        self._ops += 1
        size = 16 * self._ops + self._pid
        shapes = Tensor((size, 8), "float16"), Tensor((8, size), "float16")
        planted = Planted(f"p{self._pid}.{self._ops}", size)
        for text in (encode_layer(planted.layer), encode_op(Call("torch", "mm", shapes))):
            self._made.ranges.append(Range(text, (next(self._clock), None), self._pid, tid))
        return planted, len(self._made.ranges) - 2

    def _end(self, place: int) -> None:
        ranges = self._made.ranges
        for at in (place + 1, place):
            ranges[at] = replace(ranges[at], at=(ranges[at].at[0], next(self._clock)))

    def _node(self, tid: int, of: int | None = None) -> int:
        self._id += 1
        self._made.nodes.append(Node(self._id, next(self._clock), of, self._pid, tid))
        return self._id

    def _captured(self) -> _Graph:
        tid = self._thread()
        nodes: _Graph = []
        for _ in range(self._random.randint(1, 4)):
            planted, place = self._op(tid)
            kinds = ["kernel", *self._random.choices(_KINDS, k=self._random.randint(0, 2))]
            for kind in kinds:
                name, stream = self._random.choice(_KERNELS), self._random.randint(7, 9)
                nodes.append((self._node(tid), planted, kind, name, stream))
            self._end(place)
        return nodes

    def _parent(self, graphs: list[_Graph]) -> _Graph:
        """Put graphs into another, maybe one of them twice: their nodes are copied."""
        inside = self._random.choices(graphs, k=self._random.randint(1, 3))
        return [node for graph in inside for node in self._copied(graph)]

    def _copied(self, graph: _Graph) -> _Graph:
        """Instantiate or clone a graph, inside some op that has nothing to do with it."""
        tid = self._thread()
        _, place = self._op(tid)
        begin = next(self._clock)
        copied = [(self._node(tid, node[0]), *node[1:]) for node in graph]
        call = (begin, next(self._clock))
        self._made.calls.append(
            Work(call=call, kind="call", pid=self._pid, tid=tid, corr=begin, api=_INSTANTIATE)
        )
        self._end(place)
        return copied

    def _eager(self) -> None:
        tid = self._thread()
        planted, place = self._op(tid)
        self._corr += 1
        call = (next(self._clock), next(self._clock))
        self._end(place)
        self._add(planted, "kernel", self._random.choice(_KERNELS), 7, call, tid, None)

    def _replayed(self, graph: _Graph) -> None:
        """Launch a graph inside some other op; streams run side by side."""
        tid = self._thread()
        _, place = self._op(tid)
        self._corr += 1
        call: tuple[int, int] | None = (next(self._clock), next(self._clock))
        self._end(place)
        for node, planted, kind, name, stream in self._interleaved(graph):
            start = self._add(planted, kind, name, stream, call, tid, node)
            self._made.replay[start] = self._pid << 32 | self._corr
            call = None  # it stands once

    def _interleaved(self, graph: _Graph) -> _Graph:
        """Mix the streams, each in its own order."""
        streams: dict[int, _Graph] = {}
        for node in graph:
            streams.setdefault(node[-1], []).append(node)
        mixed = []
        while streams:
            stream = self._random.choice(sorted(streams))
            mixed.append(streams[stream].pop(0))
            streams = {number: left for number, left in streams.items() if left}
        return mixed

    def _add(
        self,
        planted: Planted,
        kind: str,
        name: str,
        stream: int,
        call: tuple[int, int] | None,
        tid: int,
        node: int | None,
    ) -> int:
        start = max(islice(self._clock, 10))  # later than the one before has ended
        api = "cudaLaunchKernel_v7000" if node is None else "cudaGraphLaunch_v10000"
        self._made.work.append(
            Work(
                name, (start, start + 50), call, kind, self._pid, tid, self._corr,
                stream=stream, api=api, node=node,
            )
        )  # fmt: skip
        self._made.truth[start] = planted
        return start
