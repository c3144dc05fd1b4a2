"""Which captured graph each replay runs: by equal kernels, by the step's batch size, by order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING, ints
from pyprof.marker import serving_steps
from pyprof.parse.graphs.matching import MIN_SIMILARITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.arrays import Int64Array
    from pyprof.parse.graphs.replays import Replays
    from pyprof.schema import GraphCaptures

_MAX_REMAINDER = 0.25
"""The share of a graph above which its remainder may be confused with another, complete graph."""


@dataclass(frozen=True, slots=True)
class _Recording:
    """A file, and the graphs that were captured in it, in their order."""

    graphs: tuple[int, ...]
    batch_size: int | None


@dataclass(slots=True)
class Choice:
    """The graph assigned to each subject, and the subjects left ambiguous."""

    graph: dict[int, int] = field(default_factory=dict)
    ambiguous: set[int] = field(default_factory=set)
    """Subjects that match several captured graphs with different ops."""


def choose(replays: Replays, captures: GraphCaptures, compared: Compared) -> Choice:
    """Choose the captured graph of each subject.

    If a step has as many launches as a recording has graphs, the n-th launch runs the n-th graph.
    The same holds for consecutive launches that match all graphs of a recording. Any other launch
    runs a graph only if it matches that one alone, and is near no other.
    """
    chooser = _Chooser(replays, captures, compared)
    chooser.by_number()
    for group, size, is_step in chooser.groups():
        chooser.take(group, size, is_step=is_step)
    return chooser.choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How captured graphs and subjects, by their numbers, compare."""

    similarity: Callable[[int, int], float]
    """Similarity of a graph and a subject: 0 to 1."""
    launches: Sequence[Int64Array]
    """Rows of each graph's launches."""
    sizes: Sequence[int]
    """Number of each subject's kernels."""
    named: Sequence[bool]
    """Whether the launches of each graph name their kernels."""
    chains: Int64Array
    """The number of the ops and layers around each launch."""

    def could_match(self, graph: int, subject: int, *, least: float) -> bool:
        """Whether one can be what is left of the other after rows were lost.

        `least` is the share of the other that must be left.
        """
        fewer, more = sorted((len(self.launches[graph]), self.sizes[subject]))
        if not least * more <= fewer < more:
            return False
        return round(self.similarity(graph, subject) * more) == fewer

    def same_ops(self, graphs: Sequence[int]) -> bool:
        """Whether all graphs have the ops, and their arguments, of the first."""
        first, *others = [self.launches[graph] for graph in dict.fromkeys(graphs)]
        return all(np.array_equal(self.chains[first], self.chains[other]) for other in others)


class _Chooser:
    def __init__(self, replays: Replays, captures: GraphCaptures, compared: Compared) -> None:
        self._replays = replays
        self._sizes = captures.batch_sizes
        self._compared = compared
        recording = ints(captures.graphs.column("recording"))
        self._recordings = [
            _Recording(tuple(np.flatnonzero(recording == number).tolist()), size)
            for number, size in enumerate(captures.recordings.column("batch_size").to_pylist())
        ]
        self._subject = np.full(len(replays.start), MISSING)
        for number, subject in enumerate(replays.subjects):
            self._subject[list(subject.replays)] = number
        self.choice = Choice()

    def by_number(self) -> None:
        """If a tool numbers graphs, the n-th is the n-th captured one, provided that all match.

        Numbers rise as graphs are captured.
        """
        numbered = [n for n, subject in enumerate(self._replays.subjects) if subject.ordered]
        if len(numbered) != len(self._replays.subjects):
            return
        fitting = [r for r in self._recordings if len(r.graphs) == len(numbered)]
        fitting = [r for r in fitting if all(map(self._fits, r.graphs, numbered))]
        if len(fitting) == len(self._recordings) == 1 and len(numbered) > 1:
            self._assign(numbered, fitting[0].graphs)

    def groups(self) -> Iterator[tuple[list[int], int | None, bool]]:
        """The subjects that each step launches, its batch size, and whether it is a step.

        Launches outside of steps are one group.
        """
        order = np.lexsort((self._replays.start, self._replays.step))
        order = order[self._subject[order] != MISSING]
        for part in np.split(order, np.flatnonzero(np.diff(self._replays.step[order])) + 1):
            if len(part):
                size = int(self._replays.batch_size[part[0]])
                is_step = bool(self._replays.step[part[0]] != MISSING)
                yield self._subject[part].tolist(), None if size == MISSING else size, is_step

    def take(self, group: list[int], size: int | None, *, is_step: bool) -> None:
        """Choose for the launches of one step, or for all that are outside of steps.

        If some of a step's kernels were lost, what is left of one graph may look like another, so
        a step with as many launches as a recording replays that recording or none.
        """
        allowed = self._recordings
        if size is not None:
            wanted = serving_steps.chosen(size, self._sizes)
            allowed = [r for r in allowed if r.batch_size in {None, wanted}]
        complete = [r for r in allowed if len(r.graphs) == len(group)]
        known = size is not None and all(r.batch_size is not None for r in complete)
        if is_step and complete and (known or len(complete) == 1):
            self._whole_step(group, complete)
            return
        rows = list(self._rows(group, allowed))
        taken = set[int]()
        if is_step or self._lies_whole(group, rows):
            for index, fitting in rows:
                length = len(fitting[0])
                if self._assign_agreed(group[index : index + length], fitting):
                    taken.update(range(index, index + length))
        lost = is_step and all(
            r.batch_size is not None and len(r.graphs) > len(group) for r in allowed
        )
        for index in range(len(group)):
            if index not in taken:
                self._choose_unique(group[index], allowed, lost=lost)

    def _whole_step(self, group: list[int], recordings: list[_Recording]) -> None:
        """Choose the best match for the launches of a step among recordings of as many graphs."""
        shares = [
            sum(map(self._compared.similarity, recording.graphs, group)) / len(group)
            for recording in recordings
        ]
        if (best := max(shares)) >= MIN_SIMILARITY:
            pairs = zip(recordings, shares, strict=True)
            self._assign_agreed(group, [r.graphs for r, mean in pairs if mean == best])

    def _rows(
        self, group: list[int], allowed: list[_Recording]
    ) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
        """Find consecutive launches that match all graphs of a recording; the longest wins."""
        index = 0
        while index < len(group):
            fitting = [
                recording.graphs
                for recording in allowed
                if 1 < len(recording.graphs) <= len(group) - index
                and (
                    len(allowed) == 1
                    or all(self._compared.named[graph] for graph in recording.graphs)
                )
                and self._all_alike(recording.graphs, group[index:])
                and self._is_pinned(recording.graphs, group[index:])
            ]
            longest = max(map(len, fitting), default=0)
            if longest:
                yield index, [graphs for graphs in fitting if len(graphs) == longest]
            index += longest or 1

    def _lies_whole(self, group: list[int], rows: list[tuple[int, list[tuple[int, ...]]]]) -> bool:
        """Whether rows follow one another, with at most a partial one before and after them.

        If launches in between were lost, a row may span two steps.
        """
        if not rows:
            return False
        until = rows[0][0]
        for index, fitting in rows:
            if index != until:
                return False
            until += len(fitting[0])
        (first, before), (_, behind) = rows[0], rows[-1]
        head, tail = group[:first], group[until:]
        return any(
            len(head) < len(graphs) and self._all_alike(graphs[len(graphs) - len(head) :], head)
            for graphs in before
        ) and any(
            len(tail) < len(graphs) and self._all_alike(graphs[: len(tail)], tail)
            for graphs in behind
        )

    def _is_pinned(self, graphs: Sequence[int], subjects: Sequence[int]) -> bool:
        """Whether some launch matches only its own graph, which fixes the offset of the sequence.

        Recording may have begun in the middle of a step, and graphs of equal kernels cannot be told
        apart by position.
        """
        return any(
            all(self._compared.similarity(other, subject) < 1 for other in graphs if other != graph)
            for graph, subject in zip(graphs, subjects, strict=False)
        )

    def _choose_unique(self, subject: int, allowed: list[_Recording], *, lost: bool) -> None:
        """Choose the one graph that a launch matches, if it can be no other one.

        If it matches none, choose the one that it nearly matches: rows were lost on one side.
        """
        if subject not in self.choice.graph:
            candidates = [graph for recording in allowed for graph in recording.graphs]
            if len(candidates) > 1:  # without names, graphs of one size are hardly told apart
                candidates = [g for g in candidates if self._compared.named[g]]
            exact = [g for g in candidates if self._compared.similarity(g, subject) == 1]
            least = 0 if lost else _MAX_REMAINDER
            near = [g for g in candidates if self._compared.could_match(g, subject, least=least)]
            graphs = exact or [
                g for g in near if self._compared.could_match(g, subject, least=MIN_SIMILARITY)
            ]
            if graphs and (len(near) > 1 or (exact and near)):
                self.choice.ambiguous.add(subject)
            elif graphs:
                self._assign_agreed([subject], [(graph,) for graph in graphs])

    def _fits(self, graph: int, subject: int) -> bool:
        """Whether a replay matches a graph, perhaps with a few rows lost."""
        alike = self._compared.similarity(graph, subject)
        return alike == 1 or self._compared.could_match(graph, subject, least=MIN_SIMILARITY)

    def _all_alike(self, graphs: Sequence[int], subjects: Sequence[int]) -> bool:
        return len(graphs) <= len(subjects) and all(
            self._compared.similarity(graph, subject) == 1
            for graph, subject in zip(graphs, subjects, strict=False)
        )

    def _assign_agreed(self, subjects: list[int], candidates: Sequence[Sequence[int]]) -> bool:
        """Assign the first candidate if all have the same ops; record ambiguous subjects."""
        if all(self._compared.same_ops(graphs) for graphs in zip(*candidates, strict=True)):
            self._assign(subjects, candidates[0])
            return True
        self.choice.ambiguous.update(subjects)
        return False

    def _assign(self, subjects: Sequence[int], graphs: Sequence[int]) -> None:
        for subject, graph in zip(subjects, graphs, strict=True):
            if self._compared.similarity(graph, subject) > 0:
                self.choice.graph.setdefault(subject, graph)
