"""Events are decoded the same with and without classes."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import Raw

from pyprof.readers.kineto.columns import timed
from pyprof.readers.kineto.file import decoding, events

_X = {"ph": "X", "name": "a", "pid": 7, "tid": "8", "ts": 12.5, "dur": 3}
_FLOW = {"ph": "s", "id": 3, "pid": 7, "tid": 8, "ts": 1, "cat": "fwdbwd", "name": "fwdbwd"}
_OP_ARGS = {
    "External id": 4,
    "Record function id": 0,
    "Sequence number": 5,
    "Concrete Inputs": ["", "1"],
    "Input Dims": [[2, 3], []],
    "Input type": ["float", "Scalar"],
    "Ev Idx": 9,
}
_KNOWN: list[dict[str, Any]] = [
    {**_X, "cat": "cpu_op", "args": _OP_ARGS},
    {**_X, "cat": "cpu_op"},
    {**_X, "cat": "user_annotation", "args": {"External id": None}},
    {**_X, "cat": "cpu_op", "args": {"Collective name": "wait", "dtype": "Int", "Src Rank": 2}},
    {**_X, "cat": "cpu_op", "args": {"kernel_backend": "triton", "num_warps": 4}},
    {**_X, "cat": "cuda_runtime", "args": {"cbid": 1, "correlation": 2, "grid": [1, 2, 3]}},
    {**_X, "cat": "kernel", "args": {"correlation": 2, "stream": 1, "registers per thread": 8}},
    {**_X, "cat": "python_function", "args": {"Python id": 1}},
    {**_X, "cat": "overhead"},
    _FLOW,
    {**_FLOW, "ph": "f", "bp": "e"},
]


def _decoded(listed: Sequence[object], *, long_timed: bool = False) -> decoding.Groups:
    groups = decoding.EventDecoder().decode([json.dumps(listed).encode()], long_timed=long_timed)
    assert groups is not None
    return groups


def _plain(listed: Sequence[dict[str, Any]]) -> decoding.Groups:
    return decoding.groups([events.from_values(listed)])


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("event", _KNOWN, ids=str)
def test_an_event_is_decoded_the_same_with_and_without_its_class(
    event: dict[str, Any], *, long: bool
) -> None:
    event |= {"ts": 1712195495519689.25} if long else {}
    ((key, (known,)),) = _decoded([event], long_timed=long).items()
    ((_, (plain,)),) = _plain([event]).items()
    assert type(known) is not events.Event
    assert key[1] == event["cat"]
    assert np.array_equal(timed([known]).us, timed([plain]).us)
    for field in {*known.__struct_fields__} - {"ts", "args"}:
        assert getattr(known, field) == getattr(plain, field)
    assert _said(event["cat"], known) == _said(event["cat"], plain)


def _said(category: str, event: events.Event) -> object:
    readers: dict[str, events.Args[Any]]
    readers = {"cpu_op": events.OPS, "cuda_runtime": events.CALLS, "kernel": events.WORK}
    if category not in readers:
        return None
    (args,) = readers[category].read([event])
    values = msgspec.structs.asdict(args).values()
    return [events.loads(value) if isinstance(value, Raw) else value for value in values]


def test_all_arguments_of_an_op_that_are_looked_at() -> None:
    """Those for its name and inputs; the profiler's own numbers are skipped."""
    ((_, (known,)),) = _decoded([_KNOWN[0]]).items()
    said = {key: _OP_ARGS[key] for key in {*_OP_ARGS} - {"Record function id", "Ev Idx"}}
    assert events.all_args(known) == said


@pytest.mark.parametrize(
    "odd",
    [
        {**_X, "cat": "new_category"},
        {**_X, "cat": ["kernel"]},
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        {**_X, "ph": "B", "cat": "cpu_op"},
        {**_X, "cat": "cpu_op", "args": [1]},
        {**_X, "cat": "fwdbwd"},
        {**_X, "ph": "X", "cat": "ac2g"},
    ],
    ids=str,
)
def test_other_events_are_read_with_those_around_them(odd: dict[str, Any]) -> None:
    listed = [*_KNOWN, odd]
    groups, plain = _decoded(listed), _plain(listed)
    assert {key: len(group) for key, group in groups.items()} == {
        key: len(group) for key, group in plain.items()
    }
    assert {type(event) for group in groups.values() for event in group} == {events.Event}


def test_arguments_of_ops_of_both_sorts() -> None:
    """They are in the order of their events."""
    known = _decoded([{**_X, "cat": "cpu_op", "args": {"External id": 1}}, {**_X, "cat": "cpu_op"}])
    others = _plain([{**_X, "cat": "cpu_op", "args": {"External id": n}} for n in (2, 3)])
    (ops,), (plain,) = known.values(), others.values()
    read = events.OPS.read([ops[0], plain[0], ops[1], plain[1]])
    assert [args.op_id for args in read] == [1, 2, None, 3]


def test_a_trace_of_other_categories_is_recognised_early() -> None:
    """Its blocks are then decoded only once."""
    decoder = decoding.EventDecoder()
    other = json.dumps([{**_X, "cat": "new_category"}]).encode()
    known = json.dumps([{**_X, "cat": "overhead"}]).encode()
    groups = decoder.decode([*[other] * 20, known], long_timed=False)
    assert groups is not None
    assert len(groups["X", "new_category"]) == 20
    (last,) = groups["X", "overhead"]
    assert type(last) is events.Event
