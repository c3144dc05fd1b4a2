"""Decodes events of a trace piece by piece, most of them into a class for their category.

Most events are of a few categories. Each of these has a class here that decodes only the fields and
arguments that pyprof needs. A piece with other events, or values of other types, is decoded into
plain `Event`s, which takes longer.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw

from pyprof.readers.kineto.file.events import (
    EVENTS,
    FAILURES,
    LONG_TIMED,
    NOTHING,
    NULL,
    CallArgs,
    Event,
    OpArgs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

Groups = dict[tuple[Any, Any], list[Event]]
"""Events by phase and category."""

_Field = tuple[str, Any] | tuple[str, Any, Any]


def _fields(time: _Field) -> dict[tuple[str, ...], tuple[str, list[_Field]]]:
    """Return phase and fields of each category, in the order in which torch writes them."""
    work = ("kernel", "gpu_memcpy", "gpu_memset")
    ops, calls = ("cpu_op", "user_annotation"), ("cuda_runtime", "cuda_driver")
    thread: list[_Field] = [("pid", Any, None), ("tid", Any, None), time]
    timed: list[_Field] = [("name", Any, ""), *thread, ("dur", Any, None)]
    return {
        work: ("X", [*timed, ("args", Raw, NOTHING)]),
        ops: ("X", [*timed, ("args", OpArgs | None, None)]),
        calls: ("X", [*timed, ("args", CallArgs | None, None)]),
        ("python_function",): ("X", timed),
        ("gpu_user_annotation", "overhead", "cuda_sync"): ("X", [time]),
        ("fwdbwd",): ("f", [("id", Any, None), *thread]),
        ("ac2g",): ("f", []),
        ("cpu_instant_event",): ("i", []),
    }


_KEYS: dict[type, tuple[str, str]] = {}
"""Phase and category of the events of a class."""
_USED: set[type] = set()
"""Classes whose events are used."""


def _decoder(time: _Field) -> msgspec.json.Decoder[list[Event]]:
    classes = {
        (phase, category): msgspec.defstruct(
            category,
            [("ph", Literal["s", "f"] if phase == "f" else Literal[phase]), *fields],
            tag_field="cat",
            tag=category,
            gc=False,
            kw_only=True,
        )
        for categories, (phase, fields) in _fields(time).items()
        for category in categories
    }
    _KEYS.update((kind, key) for key, kind in classes.items())
    _USED.update(kind for kind in classes.values() if len(kind.__struct_fields__) > 1)
    kinds: Any = reduce(or_, classes.values())
    return msgspec.json.Decoder(list[kinds])


_KNOWN = _decoder(("ts", Any, None))
_KNOWN_LONG_TIMED = _decoder(("ts", Raw, NULL))

_WASTE = 4
"""Pieces of known events that make up for one decoded in vain."""
_TRIED = 8
"""Failures after which the events of a trace are assumed to be of other categories."""


class EventDecoder:
    """Decodes the events of one trace, a few lists at a time."""

    def __init__(self) -> None:
        self._surplus = 0
        """Pieces of known events beyond `_WASTE` times those of others."""

    def decode(self, pieces: Iterable[bytes], *, long_timed: bool) -> Groups | None:
        """Decode JSON lists one after the other; None if one is not valid."""
        known, others = (_KNOWN_LONG_TIMED, LONG_TIMED) if long_timed else (_KNOWN, EVENTS)
        try:
            return groups(self._decode(piece, known, others) for piece in pieces)
        except FAILURES:
            return None

    def _decode(
        self,
        piece: bytes,
        known: msgspec.json.Decoder[list[Event]],
        others: msgspec.json.Decoder[list[Event]],
    ) -> list[Event]:
        if self._surplus > -_TRIED * _WASTE:
            try:
                events = known.decode(piece)
            except FAILURES:
                self._surplus -= _WASTE
            else:
                self._surplus += 1
                return events
        return others.decode(piece)


def groups(pieces: Iterable[list[Event]]) -> Groups:
    """Group events by phase and category; in one piece, all events have classes or none has."""
    groups: Groups = defaultdict(list)
    for events in filter(None, pieces):
        if type(events[0]) not in _KEYS:
            _add_by_key(events, groups)
            continue
        by_class: dict[type, list[Event]] = defaultdict(list)
        for event in events:
            by_class[event.__class__].append(event)
        for kind, group in by_class.items():
            if kind in _USED:
                groups[_KEYS[kind]] += group
    return groups


def _add_by_key(events: list[Event], groups: Groups) -> None:
    try:
        keys = [(event.ph, event.cat) for event in events]
        hash(tuple(keys))
    except TypeError:  # lists are not hashable
        keys = [(str(event.ph), str(event.cat)) for event in events]
    for key, event in zip(keys, events, strict=True):
        groups[key].append(event)
