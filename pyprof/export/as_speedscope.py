"""Stacks: totals, and over time per GPU stream, for https://www.speedscope.app.

Format: https://www.speedscope.app/file-format-schema.json, profiles of type `sampled`: stacks and
their durations. The first profile has each stack once, without idle time; those of the streams, one
per window of the capture, have an empty stack while idle.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import orjson

from pyprof.analysis.summary.stacks import NO_FILE, stacks
from pyprof.analysis.time.timeline import in_order, streams
from pyprof.prof.processor import processor_of, processor_of_both
from pyprof.records.records import distinct
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyprof.analysis.summary.stacks import Frame
    from pyprof.arrays import Int64Array, IntArray
    from pyprof.export import Part
    from pyprof.inputs.source import Source
    from pyprof.records.records import DictionaryColumn, Records


KIND = "events"
SUFFIXES = (".speedscope.json",)

_TIME, _IN_ALL = "{} time", "all {} work, idle time left out"
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(source: Source, file: BinaryIO) -> None:
    """Write the profiles; the weights of the first add up to the GPU time."""
    row_stacks = stacks(source.table)
    numbers: dict[Frame, int] = {}
    numbered = [[numbers.setdefault(frame, len(numbers)) for frame in s] for s in row_stacks.values]
    weight = np.zeros(len(row_stacks.values), np.int64)
    np.add.at(weight, row_stacks.index, source.table.duration_ns)
    order = np.argsort(-weight, kind="stable")
    order = order[weight[order] > 0]
    on = processor_of(source.table.records)
    samples = [numbered[number] for number in order.tolist()]
    in_all = _profile(_IN_ALL.format(on), samples, weight[order])
    profiles = chain([in_all], _profiles(source, row_stacks, numbered))
    _write(on, [_frame(frame) for frame in numbers], profiles, file)


def join(parts: Sequence[Part], file: BinaryIO) -> None:
    """Concatenate the profiles of captures, each on its own clock, named by its rank."""
    numbers: dict[bytes, int] = {}
    in_all: Counter[tuple[int, ...]] = Counter()
    moved, named = [], set()
    for each in parts:
        content = orjson.loads(each.path.read_bytes())
        named.add(content["name"].removesuffix(_TIME.format("")))
        frames = [orjson.dumps(frame) for frame in content["shared"]["frames"]]
        moved.append([numbers.setdefault(frame, len(numbers)) for frame in frames])
        first = _renumbered(content["profiles"][0], moved[-1])
        for stack, weight in zip(first["samples"], first["weights"], strict=True):
            in_all[tuple(stack)] += weight
    longest = sorted(in_all.items(), key=lambda entry: -entry[1])
    weights = np.array([weight for _, weight in longest], np.int64)
    on = reduce(processor_of_both, sorted(named))
    profile_of_all = _profile(_IN_ALL.format(on), [list(stack) for stack, _ in longest], weights)
    of_streams = (
        _renumbered(profile, own) | {"name": f"{each.name}: {profile['name']}"}
        for each, own in zip(parts, moved, strict=True)
        for profile in orjson.loads(each.path.read_bytes())["profiles"][1:]
    )
    _write(on, [*map(orjson.Fragment, numbers)], chain([profile_of_all], of_streams), file)


def _renumbered(profile: dict[str, Any], numbers: Sequence[int]) -> dict[str, Any]:
    return profile | {"samples": [[numbers[frame] for frame in s] for s in profile["samples"]]}


def _write(
    on: str, frames: Sequence[object], profiles: Iterable[dict[str, Any]], file: BinaryIO
) -> None:
    head = {
        "$schema": _SCHEMA,
        "name": _TIME.format(on),
        "exporter": f"pyprof {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
    }
    separator = orjson.dumps(head)[:-1] + b',"profiles":['
    for profile in profiles:
        file.write(separator + orjson.dumps(profile))
        separator = b","
    file.write(b"]}")


def _frame(frame: Frame) -> dict[str, Any]:
    if frame.file == NO_FILE:
        return {"name": frame.name}
    if not frame.line:
        return {"name": frame.file, "file": frame.file}
    return {"name": f"{frame.file}:{frame.line}", "file": frame.file, "line": frame.line}


def _profiles(
    source: Source, row_stacks: DictionaryColumn, numbered: list[list[int]]
) -> Iterator[dict[str, Any]]:
    records = source.table.records
    since = None
    if "start" in records.columns:  # each row's start relative to its window of the capture
        start = records.numpy("start")
        first, window_of = distinct(records.numpy("window"))
        begin = start[first]
        np.minimum.at(begin, window_of, start)
        since = start - begin[window_of]
    for stream in streams(records):
        for window, rows in _windows(records, in_order(records, stream)):
            stack = row_stacks.index[rows]
            weight = source.table.duration_ns[rows]
            start = np.cumsum(weight) - weight if since is None else since[rows]
            # insert the idle time between rows as stack -1; an overlapping row follows at once
            busy_until = np.maximum.accumulate(start + weight)
            idle = np.maximum(start - np.concatenate([[0], busy_until[:-1]]), 0)
            both = np.stack([np.full(len(stack), -1), stack], axis=1).reshape(-1)
            stack, weight = both, np.stack([idle, weight], axis=1).reshape(-1)
            stack, weight = _join_equal(stack, weight)
            samples = [numbered[number] if number >= 0 else [] for number in stack.tolist()]
            name = f"{stream.label}, window {window}" if window >= 0 else stream.label
            yield _profile(name, samples, weight)


def _windows(records: Records, rows: Int64Array) -> Iterator[tuple[int, Int64Array]]:
    """Yield the number and rows of each window of the capture; number -1 if there is only one."""
    window = records.numpy("window")[rows]
    order = np.argsort(window, kind="stable")
    first = np.flatnonzero(np.diff(window[order], prepend=-2))
    parts = np.split(rows[order], first[1:])
    yield from zip(window[order][first].tolist(), parts, strict=True)


def _profile(name: str, samples: list[list[int]], weight: Int64Array) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": int(weight.sum()),
        "samples": samples,
        "weights": weight.tolist(),
    }


def _join_equal(stack: IntArray, weight: Int64Array) -> tuple[IntArray, Int64Array]:
    """Join neighbours with the same stack, and drop those without a duration."""
    lasting = weight > 0
    stack, weight = stack[lasting], weight[lasting]
    if not len(stack):
        return stack, weight
    first = np.flatnonzero(np.concatenate([[True], stack[1:] != stack[:-1]]))
    return stack[first], np.add.reduceat(weight, first)
