"""From a capture and its memory events to the history of each device.

An event is tied to its op, layer and line as a kernel is: by where on its thread it happened.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.allocations import categories
from pyprof.allocations.history import (
    ALLOC,
    BEFORE,
    FREE_COMPLETED,
    Blocks,
    History,
    Labels,
    RecordedDevice,
    label,
    replay,
)
from pyprof.allocations.stacks import FrameHint
from pyprof.allocations.trace_events import MemoryEvents, is_synthetic
from pyprof.arrays import MISSING, ints
from pyprof.errors import CaptureError
from pyprof.marker import STEP_OF, Kind, Statement
from pyprof.parse import parse
from pyprof.parse.ranges import nesting
from pyprof.parse.ranges.range_stacks import user_line
from pyprof.parse.ranges.texts import kinds, read_texts
from pyprof.prof.op_names import op_name
from pyprof.prof.table import Table
from pyprof.quantities import counted
from pyprof.records.records import DictionaryColumn, match_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyprof.arrays import Int64Array
    from pyprof.schema import Capture

_CPU = 0
_DEVICES = {_CPU: "cpu", 1: "cuda", 6: "cuda", 12: "xpu", 13: "mps"}
"""Names of torch's device types; 6 is HIP, which torch calls cuda."""
_FROM_NOTHING = frozenset(
    (
        *("arange", "empty", "eye", "full", "linspace", "ones", "tensor", "zeros"),
        *("normal", "rand", "randint", "randn", "randperm"),
    )
)
"""Ops that make a tensor of no other: outside of layers, for a pass or before all of them."""
_PARTS = {"fprop": "forward", "bprop": "backward", "optim": "optimizer", "comm": "communication"}
_CLUES = {
    "forward": FrameHint.FORWARD,
    "backward": FrameHint.BACKWARD,
    "optimizer": FrameHint.OPTIMIZER,
    "communication": FrameHint.COMMUNICATION,
}


class EventContext(NamedTuple):
    """What was going on at each event."""

    line: Labels
    op: Labels
    layer: Labels
    direction: Labels
    function: Labels
    """The innermost range: an op of torch's, or an annotation."""
    stack: Labels
    """The lines of Python around it, the outermost first, each on a line."""


def devices(
    capture: Capture,
    events: MemoryEvents,
    names: Mapping[int, str] = _DEVICES,
    notes: Sequence[str] = (),
    *,
    of_tensors: bool = True,
) -> Iterator[RecordedDevice]:
    """Return each device of each process, with its own notes and `notes`.

    `names` are those of the types of devices or, unless blocks are tensors, of memory.
    """
    sites = find_sites(capture, events)
    half = has_half_precision(capture)
    marked_by, moments = step_bounds(capture)
    keys = np.stack([events.pid, events.device_type, events.device])
    distinct, device_of = np.unique(keys, axis=1, return_inverse=True)
    several = len(np.unique(events.pid)) > 1
    for index, (pid, kind, number) in enumerate(distinct.T.tolist()):
        rows = np.flatnonzero(device_of.reshape(-1) == index)
        name = names.get(kind, f"{'device type' if of_tensors else 'memory kind'} {kind}")
        name = name if number < 0 else f"{name}:{number}"
        name = f"{name} of process {pid}" if several else name
        history, stacks, own = _history(name, events, rows, sites, half_precision=half)
        states = np.searchsorted(events.time_ns[rows], moments, "right") - 1
        steps = (marked_by, tuple(states[states >= 0].tolist()))
        yield RecordedDevice(
            history, steps, notes=(*own, *notes), stacks=stacks, of_tensors=of_tensors
        )


def _history(
    name: str, events: MemoryEvents, rows: Int64Array, sites: EventContext, *, half_precision: bool
) -> tuple[History, Labels, tuple[str, ...]]:
    size = events.bytes[rows]
    replayed = replay(np.where(size > 0, ALLOC, FREE_COMPLETED), events.address[rows], np.abs(size))
    blocks = replayed.blocks
    at = np.where(blocks.allocated == BEFORE, MISSING, blocks.allocated)
    freed = np.where(blocks.released < len(rows), blocks.released, MISSING)
    own = EventContext(*(said.take(rows) for said in sites))
    freed_clues = clues(own, freed)
    freed_in = categories.freed_in(freed_clues, blocks.released, directions(own.direction))
    category, evidence = categories.categorise(
        blocks,
        categories.Evidence(clues(own, at), freed_clues, freed_in),
        directions(own.direction.take(at)),
        len(rows),
    )
    labels = {each: said.take(at) for each, said in own._asdict().items()}
    given_back = {each: said.take(freed) for each, said in own._asdict().items()}
    if earlier := _bytes_before(events.allocated[rows], size, blocks):
        # a single block of everything that was live all the time, and about which nothing is known
        columns = ([MISSING], [earlier], [BEFORE], [len(rows)], [len(rows)])
        blocks = blocks.plus(Blocks(*(np.array(column, np.int64) for column in columns)))
        another = np.append(np.arange(len(at)), MISSING)
        labels = {key: said.take(another) for key, said in labels.items()}
        given_back = {key: said.take(another) for key, said in given_back.items()}
        category = category.take(another)
        evidence = evidence.take(another)
        evidence.codes[-1] = evidence.names.index(categories.BEFORE_HISTORY)
    labels |= {"category": category, "evidence": evidence}
    stacks = labels.pop("stack")
    given_back.pop("stack")
    reserved = events.reserved[rows]
    # the CPU has no cache: its events have 0, but for shared memory its size
    has_reserved = bool((reserved > 0).any()) and not (events.device_type[rows] == _CPU).all()
    history = History(
        device=name,
        time_ns=events.time_ns[rows],
        blocks=blocks,
        reserved_end=int(reserved[-1]) if has_reserved else None,
        reserved_change=np.diff(reserved, prepend=reserved[0]) if has_reserved else None,
        labels=labels,
        given_back_by=given_back,
        half_precision=half_precision,
    )
    notes = _notes(history, events.allocated[rows], replayed.lost)
    inferred = (_INFERRED,) if is_synthetic(events.address[rows]).any() else ()
    return history, stacks, (*inferred, *notes)


_INFERRED = (
    "this version of torch recorded no addresses: which block is freed is inferred from its size"
)


def _bytes_before(allocated: Int64Array, size: Int64Array, blocks: Blocks) -> int:
    """Bytes that the allocator had counted before the first event."""
    if allocated[0] < 0:
        return 0
    before = int(allocated[0] - size[0])
    return max(0, before - int(blocks.bytes[blocks.live(BEFORE)].sum()))


def _notes(history: History, allocated: Int64Array, lost: int) -> Iterator[str]:
    if (allocated >= 0).all() and (wrong := int((history.level != allocated).sum())):
        yield (
            f"after {wrong:,} of {len(allocated):,} events the allocator counts another total: "
            "some events are missing"
        )
    if lost:
        yield f"{counted(lost, 'free')} of blocks whose allocation was not recorded"


_HALF = re.compile(r"""['"]b?float16['"]""")
_HALF_KERNEL = re.compile(
    r"(?i)bf16|bfloat16|fp16|float16|_f16|f16f|h(?:884|1688|16816)gemm|__half"
)


def has_half_precision(capture: Capture) -> bool:
    """Whether an op takes float16 or bfloat16, or a kernel has it in its name."""
    names = capture.activities.column("name").unique().to_pylist()
    return any(_HALF.search(said.text) for said in read_texts(capture.ranges).statements) or any(
        _HALF_KERNEL.search(name) for name in names if name
    )


def find_sites(capture: Capture, events: MemoryEvents) -> EventContext:
    """Tie each event to what went on around it on its thread."""
    captured = [ints(capture.threads.column(name)) for name in ("pid", "tid")]
    thread = match_combinations(captured, [events.pid, events.tid])  # MISSING if nothing ran there
    table = _records(capture, events, thread)
    order = table.records.numpy("corrId")  # each event is a call of its own, by number

    def labels(column: DictionaryColumn, say: Callable[[list[str]], str | None]) -> Labels:
        codes = np.full(len(thread), MISSING)
        codes[order] = column.index
        return label([say(value) if value else None for value in column.values]).take(codes)

    op = labels(_ops(table), str)
    layer = labels(table.own_or_forward("layer"), lambda names: names[-1])
    direction = labels(table.records.dictionary("dir"), lambda said: _PARTS.get(str(said)))
    forward = directions(direction) == categories.DIRECTIONS.index("forward")
    made = np.isin(op.codes, [i for i, name in enumerate(op.names) if name in _FROM_NOTHING])
    direction.codes[forward & made & (layer.codes == MISSING)] = MISSING
    return EventContext(
        labels(table.own_or_forward("trace"), user_line),
        op,
        layer,
        direction,
        _functions(capture, events, thread),
        labels(table.own_or_forward("trace"), lambda lines: "\n".join(lines) or None),
    )


def sites_at(capture: Capture, time_ns: Int64Array) -> EventContext:
    """Tie moments to what was running: if several threads were in an op, to the last one to begin.

    Raises CaptureError if the capture was recorded at another time.
    """
    start, end = (ints(capture.ranges.column(name)) for name in ("start", "end"))
    times = time_ns[time_ns != MISSING]
    if not len(start) or not len(times):
        raise CaptureError("the trace has no ranges, or the memory snapshot no times")
    if times.max() < start.min() or times.min() > end.max():
        raise CaptureError(
            "the trace and the memory snapshot are of different times; record both in one run, "
            "with pyprof capture --memory"
        )
    thread = _find_thread(capture, time_ns)
    pids, tids = (
        np.append(ints(capture.threads.column(name)), MISSING)[thread] for name in ("pid", "tid")
    )
    unknown = np.full(len(time_ns), MISSING)
    return find_sites(capture, MemoryEvents(time_ns, pids, tids, *[unknown] * 6))


def _find_thread(capture: Capture, time_ns: Int64Array) -> Int64Array:
    """Return, for each moment, the thread whose innermost range began last; MISSING if none."""
    texts = read_texts(capture.ranges)
    start, end, on = (ints(capture.ranges.column(name)) for name in ("start", "end", "thread"))
    rows = np.flatnonzero((end != MISSING) & (kinds(texts) == Kind.SEQ))
    nest = nesting.nest(on[rows], start[rows], end[rows], lambda: rows)
    chosen, begun = np.full(len(time_ns), MISSING), np.full(len(time_ns), MISSING)
    for thread in np.unique(on[rows]).tolist():
        threads = np.full(len(time_ns), thread)
        leaf = nesting.innermost(nest, threads, time_ns, time_ns)
        since = np.append(nest.start, MISSING)[leaf]
        later = since > begun
        chosen[later], begun[later] = thread, since[later]
    return chosen


def _ops(table: Table) -> DictionaryColumn:
    mods, ops = table.own_or_forward("mod"), table.own_or_forward("op")
    pairs, code = np.unique(np.stack([mods.index, ops.index]), axis=1, return_inverse=True)
    names = []
    for mod, op in pairs.T.tolist():
        module = mods.values[mod] if mod >= 0 else None
        called = ops.values[op] if op >= 0 else None
        names.append(op_name(module[0] if module else None, called[0]) if called else None)
    return DictionaryColumn(code.reshape(-1), names)


def _records(capture: Capture, events: MemoryEvents, thread: Int64Array) -> Table:
    """Parse the capture with memory events as its work, each as a call that does nothing."""
    count = len(thread)
    both = {
        "start": events.time_ns,
        "end": events.time_ns,
        "corr": np.arange(count),
        "name": pa.array(["[memory]"] * count),
    }
    kind = np.full(count, schema.CPU)
    activities = schema.table(schema.ACTIVITIES, both | {"kind": kind, "pid": events.pid})
    of_thread = pa.array(thread, pa.int32(), mask=thread == MISSING)
    calls = schema.table(schema.CALLS, both | {"thread": of_thread})
    return Table(parse(replace(capture, activities=activities, calls=calls, graph_captures=None)))


def _functions(capture: Capture, events: MemoryEvents, thread: Int64Array) -> Labels:
    texts = read_texts(capture.ranges)
    start, end, on = (ints(capture.ranges.column(name)) for name in ("start", "end", "thread"))
    rows = np.flatnonzero((end != MISSING) & np.isin(kinds(texts), _FUNCTIONS))
    nest = nesting.nest(on[rows], start[rows], end[rows], lambda: rows)
    leaf = nesting.innermost(nest, thread, events.time_ns, events.time_ns)
    code = np.append(texts.code[rows[nest.order]], MISSING)[leaf]
    return label([said.name for said in texts.statements]).take(code)


_FUNCTIONS = [Kind.SEQ, Kind.OPTIMIZER, Kind.STEP, Kind.USER, Kind.CONTEXT]
"""What torch.profiler lists as functions; pyprof's own markers go around them."""


def directions(direction: Labels) -> Int64Array:
    """Directions as codes of `categories`."""
    numbers = [categories.DIRECTIONS.index(name) for name in direction.names]
    return np.array([*numbers, MISSING], np.int64)[direction.codes]


def clues(sites: EventContext, at: Int64Array) -> Int64Array:
    """Return hints at the purpose of blocks, as `stacks.describe` does from stacks."""
    parts = np.array([*(_CLUES[name] for name in sites.direction.names), 0], np.int64)
    functions = [
        FrameHint.ACCUMULATES if "AccumulateGrad" in name
        else FrameHint.ZERO_GRAD if name.startswith("Optimizer.zero_grad#")
        else 0
        for name in sites.function.names
    ]  # fmt: skip
    said = np.array([*functions, 0], np.int64)[sites.function.take(at).codes]
    return np.asarray(parts[sites.direction.take(at).codes] | said)


def step_bounds(capture: Capture) -> tuple[str, Int64Array]:
    """What marks steps, and the moments at which one ends; none without marks."""
    texts = read_texts(capture.ranges)
    start, end = (ints(capture.ranges.column(name)) for name in ("start", "end"))
    for marked_by, wanted in _MARKS:
        named = np.array([wanted(said) for said in texts.statements], bool)
        rows = np.flatnonzero(named[texts.code] & (end != MISSING)) if len(named) else start[:0]
        if len(rows):
            return marked_by, np.sort(end[rows])
    return "", np.zeros(0, np.int64)


_MARKS: tuple[tuple[str, Callable[[Statement], bool]], ...] = (
    ("ranges of steps", lambda said: said.kind is Kind.STEP),
    ("Optimizer.step", lambda said: said.text.startswith(STEP_OF)),
)
