"""The nodes of graphs, from recordings and eager runs, if the tool does not record them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, or_null, set_column
from pyprof.errors import NOTE
from pyprof.marker import Kind
from pyprof.parse import launch_sites
from pyprof.parse import launches as correlate
from pyprof.parse.graphs import choice, matching
from pyprof.parse.graphs import replays as replaying
from pyprof.parse.ranges import range_stacks
from pyprof.parse.ranges.nesting import innermost
from pyprof.parse.ranges.sweep import sweep_ranges
from pyprof.parse.steps.profiler_windows import recording_windows
from pyprof.quantities import counted
from pyprof.readers.validate import in_order
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.parse.graphs.replays import Replays, Subject
    from pyprof.parse.ranges.sweep import Sweep
    from pyprof.schema import Capture, GraphCaptures

CAPTURED, TWIN = (schema.VIAS.index(via) for via in ("graph capture", "eager twin"))

_FEWEST = 8
"""Minimum kernels of a sequence to infer from: a few of the same names may belong to any ops."""


def attribute_nodes(capture: Capture) -> tuple[Capture, tuple[str, ...]]:
    """Add graph nodes to replayed work that has none; also return warnings.

    The ranges of recordings become the capture's own.
    """
    captures = capture.graph_captures
    if captures is not None and len(captures.ranges):  # these have threads of their own
        both = pa.concat_tables([capture.ranges, captures.ranges]).unify_dictionaries()
        capture = replace(capture, ranges=both.combine_chunks())
    activities = in_order(capture.activities)
    launch = correlate.launches(capture, activities, recording_windows(capture))
    replay = launch_sites.replays(capture, activities, launch)
    if not (launch_sites.replayed(activities, replay) & ~_has_op(capture, activities)).any():
        return capture, ()
    replays = replaying.find(capture, activities, launch, replay)
    work = _Work(capture, activities, launch, replays, sweep_ranges(capture))
    if captures is not None:
        work.from_recordings(captures)
    work.match_eager_runs()
    return work.capture(), tuple(work.sentences())


def _has_op(capture: Capture, activities: pa.Table) -> Mask:
    """Mask of activities whose node has an op; node annotations alone record only lines."""
    node = ints(activities.column("graph_node"))
    thread = np.append(ints(capture.graph_nodes.column("thread")), MISSING)[node]
    has_op = thread != MISSING
    if capture.graph_captures is not None:
        first = ints(capture.graph_captures.recordings.column("first_thread").drop_null())
        has_op &= (thread < first.min()) if len(first) else True
    return np.asarray(has_op, bool)


@dataclass(slots=True, kw_only=True)
class _Counts:
    """Numbers of graph kernels, by how they were matched."""

    named: int = 0
    ordered: int = 0
    eager_runs: int = 0
    expected: int = 0
    """Rows that the replays of captured graphs should have."""
    missing: int = 0
    """How many of these rows the trace lacks."""
    uncertain: int = 0
    """Kernels that could be of several launches, because rows beside them are missing."""


class _Work:
    """What is known so far of the nodes of one capture."""

    def __init__(
        self,
        capture: Capture,
        activities: pa.Table,
        launch: Int64Array,
        replays: Replays,
        sweep: Sweep,
    ) -> None:
        self._capture, self._activities, self._launch = capture, activities, launch
        self._replays, self._sweep = replays, sweep
        self._kind = ints(activities.column("kind"))
        self._before = ints(activities.column("graph_node"))
        self._has_op = _has_op(capture, activities)
        count = len(activities)
        self._thread, self._time, self._via = (np.full(count, MISSING) for _ in range(3))
        self._place = np.full(count, MISSING)
        """Per activity: the captured launch that it replays; MISSING if unknown."""
        self._counts = _Counts()
        self._known_places: dict[tuple[int, bytes], Int64Array] = {}
        self._used: set[int] = set()
        """Recordings that some replay was matched with."""
        self._ambiguous = 0

    # --- recordings -------------------------------------------------------------------------------

    def from_recordings(self, captures: GraphCaptures) -> None:
        """Tie replays to the graphs of recordings."""
        graph = ints(captures.launches.column("graph"))
        count = len(captures.graphs)
        order = np.argsort(graph, kind="stable")
        bounds = np.searchsorted(graph[order], np.arange(count + 1))
        rows = [order[low:high] for low, high in pairwise(bounds.tolist())]
        known = ints(captures.launches.column("name").combine_chunks().indices) != MISSING
        named_or_no_kernel = known | (self._kind_of_launch != schema.KERNEL)
        named = [bool(named_or_no_kernel[part].all()) for part in rows]
        subjects = self._replays.subjects

        @cache
        def similarity(graph: int, which: int) -> float:
            launches, subject = rows[graph], subjects[which]
            if named[graph]:
                return matching.share(*self._take_both(launches, subject.rows))
            index = self._match_by_order(launches, subject)
            return len(index) / len(launches) if (index != MISSING).any() else 0.0

        compared = choice.Compared(
            similarity=similarity,
            launches=rows,
            sizes=[len(subject.rows) for subject in subjects],
            named=named,
            chains=np.append(self._chain_of_range, MISSING)[self._launch_leaf],
        )
        made = choice.choose(self._replays, captures, compared)
        recording = ints(captures.graphs.column("recording"))
        for which, number in made.graph.items():
            if self._tie(subjects[which], number, rows[number], captures, named=named[number]):
                self._used.add(int(recording[number]))
        left = made.ambiguous - made.graph.keys()
        self._ambiguous = sum(len(subjects[which].rows) for which in left)

    def _take_both(
        self, launches: Int64Array, rows: Int64Array
    ) -> tuple[matching.Kernels, matching.Kernels]:
        return self._replays.of_launches.take(launches), self._replays.of_activities.take(rows)

    def _match_by_order(self, launches: Int64Array, subject: Subject) -> Int64Array:
        """Match by order alone; MISSING if order is unknown, or an op does not fit its kernel."""
        rows = subject.rows
        if not subject.ordered and len(np.unique(self._replays.of_activities.stream[rows])) > 1:
            return np.full(len(rows), MISSING)
        code, names = self._names

        def fit(launch: tuple[int, int], kernel: tuple[int, int]) -> bool:
            (kind, op), (ran_as, name) = launch, kernel
            return kind == ran_as and matching.fits(
                self._op_texts[op] if op >= 0 else None, names[name]
            )

        return matching.match_by_order(
            _pairs(self._kind_of_launch[launches], self._launch_ops[launches]),
            _pairs(self._kind[rows], code[rows]),
            fit,
        )

    def _tie(
        self,
        subject: Subject,
        graph: int,
        launches: Int64Array,
        captures: GraphCaptures,
        *,
        named: bool,
    ) -> bool:
        """Assign a replay the launches of its graph; False if they contradict each other."""
        if named:
            theirs, ours = self._take_both(launches, subject.rows)
            key = graph, np.stack([*ours.levels, ours.stream]).tobytes()
            if key not in self._known_places:  # equal replays of a graph are matched once
                self._known_places[key] = matching.match_launches(theirs, ours)
            index = self._known_places[key]
        else:
            index = self._match_by_order(launches, subject)
        if (index == MISSING).all():
            return False
        rows, index = self._spread(subject, index)
        expected = max(len(launches), len(subject.rows)) * max(len(subject.replays), 1)
        self._counts.expected += expected
        self._counts.missing += max(expected - len(rows), 0)
        self._counts.uncertain += int((index == MISSING).sum())
        rows, index = rows[index != MISSING], index[index != MISSING]
        self._place[rows] = launches[index]
        self._thread[rows] = ints(captures.launches.column("thread"))[launches[index]]
        self._time[rows] = ints(captures.launches.column("time"))[launches[index]]
        self._via[rows] = CAPTURED
        self._counts.named += len(rows) * named
        self._counts.ordered += len(rows) * (not named)
        return True

    def _spread(self, subject: Subject, place: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Rows of a subject's nodes in all its replays, and the match of each."""
        if len(subject.replays) <= 1:
            return subject.rows, place
        node = ints(self._activities.column("node_id"))
        ours = np.isin(self._replays.replay, subject.replays)
        rows = np.flatnonzero(ours & np.isin(node, node[subject.rows]))
        order = np.argsort(node[subject.rows], kind="stable")
        return rows, place[order[np.searchsorted(node[subject.rows], node[rows], sorter=order)]]

    # --- eager runs -------------------------------------------------------------------------------

    def match_eager_runs(self) -> None:
        """Match the remaining kernels with similar ones that ran outside graphs."""
        subjects = [subject for subject in map(self._kernels, self._replays.subjects) if subject]
        outside = (self._replays.replay == MISSING) & (self._launch != MISSING)
        eager = np.flatnonzero(outside & (self._kind == schema.KERNEL))
        if not subjects or not len(eager):
            return
        key = self._replays.of_activities.levels[0]
        thread, start, end = (
            ints(self._capture.calls.column(name))[self._launch[eager]]
            for name in ("thread", "start", "end")
        )
        order = np.lexsort((start, thread))
        eager, thread, start, end = (part[order] for part in (eager, thread, start, end))
        # id of the enclosing ops (with arguments) and layers of each interval
        leaf = innermost(self._sweep.nest, thread, start, end)
        ops = np.append(self._chain_of_range, MISSING)[leaf]
        known: dict[bytes, Int64Array | None] = {}
        for subject in subjects:
            wanted = key[subject.rows]
            text = wanted.tobytes()
            if text not in known:
                known[text] = self._find_twin(wanted, key[eager], thread, ops)
            if (twin := known[text]) is not None:
                rows, index = self._spread(subject, twin)
                self._thread[rows], self._time[rows] = thread[index], start[index]
                self._via[rows] = TWIN
                self._counts.eager_runs += len(rows)

    def _kernels(self, subject: Subject) -> Subject | None:
        """The kernels of a subject if none has a match, they are enough, and in a known order."""
        rows = subject.rows[self._kind[subject.rows] == schema.KERNEL]
        streams = np.unique(self._replays.of_activities.stream[rows])
        tied = (self._via[rows] != MISSING) | self._has_op[rows]
        if len(rows) < _FEWEST or tied.any() or (len(streams) > 1 and not subject.ordered):
            return None
        return replace(subject, rows=rows)

    def _find_twin(
        self, wanted: Int64Array, within: Int64Array, thread: Int64Array, ops: Int64Array
    ) -> Int64Array | None:
        """The last similar sequence, if all similar ones have the same ops; else None."""
        length = len(wanted)
        starts = matching.find_eager_runs(wanted.tolist(), within)
        starts = starts[thread[starts] == thread[starts + length - 1]] if len(starts) else starts
        if not len(starts):
            return None
        chosen = ops[starts[:, None] + np.arange(length)]
        if (chosen != chosen[-1]).any() or (chosen[-1] == MISSING).all():
            return None
        return np.asarray(starts[-1] + np.arange(length))

    # --- ops --------------------------------------------------------------------------------------

    @property
    def _captures(self) -> GraphCaptures:
        captures = self._capture.graph_captures
        assert captures is not None  # noqa: S101 - used only for recordings
        return captures

    @cached_property
    def _chain_of_range(self) -> Int64Array:
        """Number, for each range of the sweep, the chain of texts and arguments that it ends."""
        inputs = self._capture.ranges.column("inputs").combine_chunks()
        code = ints(inputs.indices)[self._sweep.row] + 1
        text, line = self._sweep.texts.code, self._sweep.texts.kind == Kind.TRACE
        text = np.where(line[text], len(line), text)  # the line of a script does not matter
        nest = self._sweep.nest
        chains = range_stacks.intern(nest.parent, nest.depth, number_combinations(text, code))
        return chains.of_range.astype(np.int64)

    @cached_property
    def _kind_of_launch(self) -> Int64Array:
        """One entry per launch of the recordings."""
        return ints(self._captures.launches.column("kind"))

    @cached_property
    def _launch_leaf(self) -> Int64Array:
        table = self._captures.launches
        thread, time = (ints(table.column(name)) for name in ("thread", "time"))
        return innermost(self._sweep.nest, thread, time, time)

    @cached_property
    def _launch_ops(self) -> Int64Array:
        """Template of the innermost op around each launch; MISSING if there is none."""
        is_op = np.isin(self._sweep.texts.kind, (Kind.OP, Kind.SEQ))
        wanted = is_op[self._sweep.texts.code]
        op = correlate.last(
            correlate.chains(self._sweep.nest.parent, wanted, self._launch_leaf, most=1)
        )
        return np.where(op == MISSING, MISSING, np.append(self._sweep.texts.code, MISSING)[op])

    @cached_property
    def _op_texts(self) -> list[str]:
        names = []
        for said in self._sweep.texts.statements:
            marked = said.call.op if said.kind == Kind.OP and said.call else said.text
            names.append(said.name if said.kind == Kind.SEQ else marked)
        return names

    @cached_property
    def _names(self) -> tuple[Int64Array, list[str]]:
        column = self._activities.column("name").combine_chunks()
        return ints(column.indices), column.dictionary.to_pylist()

    # --- results ----------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """The capture with the nodes that were found."""
        rows = np.flatnonzero(self._via != MISSING)
        if not len(rows):
            return replace(self._capture, activities=self._activities)
        nodes = np.stack([column[rows] for column in (self._thread, self._time, self._via)])
        distinct, number = np.unique(nodes, axis=1, return_inverse=True)
        thread, time, via = distinct
        more = schema.table(
            schema.GRAPH_NODES,
            {"thread": thread.astype(np.int32), "time": time, "via": via.astype(np.int8)},
        )
        node = self._before.copy()
        node[rows] = len(self._capture.graph_nodes) + number.reshape(-1)
        activities = set_column(self._activities, "graph_node", or_null(node))
        if (self._place != MISSING).any():
            # fill in grid, block and shared memory from the captured launch
            table, index = self._captures.launches, or_null(self._place)
            for name in ("smem", *replaying.AXES):
                captured = table.column(name).combine_chunks().take(index)
                column = pc.coalesce(activities.column(name).combine_chunks(), captured)
                activities = set_column(activities, name, column)
        return replace(
            self._capture,
            activities=activities,
            graph_nodes=pa.concat_tables([self._capture.graph_nodes, more]).combine_chunks(),
        )

    def sentences(self) -> Iterator[str]:
        """Say what was inferred, and what was not found."""
        of_all = f"of {int(self._replays.replayed.sum()):,} replayed kernels and copies"
        counts = self._counts
        if counts.named:
            yield (
                f"{NOTE}{counts.named:,} {of_all} are matched by name and "
                f"order with the capture of their graphs{self._files(self._used)}"
            )
        if counts.ordered:
            yield (
                f"{NOTE}{counts.ordered:,} {of_all} are matched by order "
                f"alone with the capture of their graphs{self._files(self._used)}: the calls in "
                "that trace do not name their kernels, but the ops fit"
            )
        if counts.eager_runs:
            yield (
                f"{NOTE}{counts.eager_runs:,} {of_all} have the op of the same "
                "kernels that ran outside graphs: inferred"
            )
        if counts.missing:
            yield (
                f"{counts.missing:,} of {counts.expected:,} kernels and copies of captured graphs "
                "are missing in their replays, as if the profiler had lost them: the others are "
                "aligned with the capture"
            )
        yield from self._describe_unmatched(of_all)

    def _describe_unmatched(self, of_all: str) -> Iterator[str]:
        captures = self._capture.graph_captures
        lacking = self._replays.replayed & (self._via == MISSING) & ~self._has_op
        left = int(lacking.sum())
        if captures is None or not left:
            return
        if self._ambiguous:
            yield (
                f"{counted(self._ambiguous, 'kernel')} of graphs left without an op: several "
                "captured graphs, with different ops, fit; capture with ranges that state the "
                "batch size"
            )
        if self._counts.uncertain:
            yield (
                f"{counted(self._counts.uncertain, 'kernel')} of graphs left without an op: rows "
                "before or after are missing, so that several launches fit"
            )
        unused = set(ints(captures.graphs.column("recording")).tolist()) - self._used
        left -= self._counts.uncertain
        if unused and left:
            yield (
                f"no replay fits the captured graphs{self._files(unused)}: they are from another "
                f"model, batch size or run, or cut short; {left:,} {of_all} have no op"
            )
        elif left and not self._ambiguous:
            sizes = np.unique(self._replays.batch_size[self._replays.replay[lacking]])
            listed = [str(size) for size in sizes.tolist() if size != MISSING][:_MAX_LISTED]
            of_sizes = f" (batch size {', '.join(listed)})" if listed else ""
            yield f"{left:,} {of_all} fit no captured graph{of_sizes}: they have no op"

    def _files(self, recordings: Sequence[int] | set[int]) -> str:
        names = self._captures.recordings.column("file").to_pylist()
        listed = sorted({Path(names[number]).name for number in recordings})
        more = f" and {len(listed) - _MAX_LISTED} more" if len(listed) > _MAX_LISTED else ""
        return f" ({', '.join(listed[:_MAX_LISTED])}{more})"


_MAX_LISTED = 3
"""Maximum number of files or batch sizes that a message lists."""


def _pairs(one: Int64Array, other: Int64Array) -> list[tuple[int, int]]:
    return [*zip(one.tolist(), other.tolist(), strict=True)]
