"""The texts of ops and annotations: each distinct one is written once, not once a call."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof import marker
from pyprof.marker import templates
from pyprof.readers.kineto import texts
from pyprof.readers.kineto.columns import Interned
from pyprof.readers.kineto.file import events
from pyprof.readers.kineto.file.events import ABSENT, NO_NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array
    from pyprof.readers.kineto.file.events import Event, OpArgs

FRAME, MODULE, NOTE, MARKER, OP, COMPILING = range(6)
"""What a range is; MARKER is an annotation with a trace of PyProf's own, COMPILING is around a part
of what torch.compile does before a model runs."""
_COMPILING = "(dynamo_timed)"

OWN = ("{", "layer:", "pyprof%")
"""What PyProf's texts begin with."""

_SEQ, _OP_ID = 987_654_321_987_654_321, 876_543_219_876_543_210
"""Stand in a text for the numbers that differ from call to call."""
_MOST = 10**18
"""Numbers from here on stay in their text, as `templates.split` has it."""

_Key = tuple[object, ...]


class Written(NamedTuple):
    """What some ranges are."""

    kind: Int64Array
    name: Int64Array
    """Number of the op's name; -1 for what is no op."""
    text: Int64Array
    """Number of the text."""


class _Form(NamedTuple):
    """What all calls have in common that differ in nothing but their numbers."""

    kind: int
    name: int
    text: int
    """-1 where the text depends on the numbers in another way than by holding them."""


_OTHERS = attrgetter(
    *("backend", "file", "hash", "kwargs", "warps", "stages", "grid", "collective", "dtype"),
    *("count_in", "count_out", "size", "group", "description", "ranks", "src", "dst"),
)
"""What some ops have beside shapes: kernels that Inductor made, and collectives."""


class OpTexts:
    """The texts gathered so far."""

    def __init__(self) -> None:
        self.names = Interned()
        """Names of ops."""
        self._texts = Interned()
        self._forms: dict[_Key, _Form] = {}

    def intern(self, text: str) -> int:
        """Number a text that holds no numbers of an op."""
        return self._texts[text]

    def write(
        self,
        calls: list[Event],
        args: list[OpArgs],
        seq: Int64Array,
        op_id: Int64Array,
        *,
        ops: bool,
    ) -> Written:
        """Write what some ops, or annotations, say; NO_NUMBER stands for a missing number."""
        names = named(calls)
        pieces = [events.numbered([*map(shape, args)]) for shape in _SHAPES]
        present = np.array([a.seq is not NO_NUMBER for a in args], bool)
        flags = ops + 2 * present + 4 * (seq == NO_NUMBER) + 8 * (op_id == NO_NUMBER)
        other = self._others(args, names)
        parts: list[tuple[Int64Array, Sequence[object]]] = [*pieces, names, (flags, _FLAGS), other]
        first, form_of = _distinct([part[0] for part in parts], [len(part[1]) for part in parts])
        written = _Calls(calls, names, seq, op_id, ops=ops)
        spelt = ([listed[n] for n in number[first].tolist()] for number, listed in parts)
        forms = [
            self._forms.get(key) or self._form(key, written, row)
            for row, key in zip(first.tolist(), zip(*spelt, strict=True), strict=True)
        ]
        kind, name, text = np.array(forms, np.int64).reshape(len(forms), 3).T[:, form_of]
        wide = (seq >= _MOST) | (op_id >= _MOST) | ((op_id < 0) & (op_id != NO_NUMBER))
        for row in np.flatnonzero(wide | (text < 0)).tolist():
            text[row] = self._texts[written.text(row)[1]]
        return Written(kind, name, text)

    def _others(self, args: list[OpArgs], names: Names) -> tuple[Int64Array, list[object]]:
        """Number what else some ops say; 0 stands for nothing."""
        generated = np.array([texts.is_generated(name) for name in names.values], bool)
        rows = [
            row
            for row, (each, by_name) in enumerate(
                zip(args, generated[names.number].tolist(), strict=True)
            )
            if by_name or each.backend is not ABSENT or each.collective is not ABSENT
        ]
        said = Interned()
        said[()]  # of all others
        numbers = np.zeros(len(args), np.int64)
        if rows:
            numbers[rows] = [said[tuple(map(bytes, _OTHERS(args[row])))] for row in rows]
        return numbers, list(said.values())

    def _form(self, key: _Key, written: _Calls, row: int) -> _Form:
        kind, text = written.text(row, _SEQ, _OP_ID)
        name = self.names[written.name(row)] if kind == OP else -1
        number = self._texts[text] if kind != OP or _regular(text) else -1
        form = self._forms[key] = _Form(kind, name, number)
        return form

    def table(self, text: Int64Array, seq: Int64Array, op_id: Int64Array) -> pa.Table:
        """Give texts by number, with the numbers of each, as `marker.numbered` takes them apart."""
        distinct = templates.split(pa.array(self._texts.values(), pa.string()))
        template, written_seq, written_id, inputs = distinct.flatten()
        rows = pa.array(text)
        return pa.table(
            [
                template.take(rows),
                _with_numbers(written_seq, _SEQ, text, seq),
                _with_numbers(written_id, _OP_ID, text, op_id),
                inputs.take(rows),
            ],
            schema=pa.schema([*templates.NUMBERED]),
        )


_SHAPES = tuple(map(attrgetter, ("dims", "old_dims", "types", "strides", "inputs")))
_FLAGS = range(16)


class Names(NamedTuple):
    """Names of events: the number of each, and the distinct names by number."""

    number: Int64Array
    values: list[str]


def named(calls: Sequence[Event]) -> Names:
    """Number the names of events."""
    names = [event.name for event in calls]
    try:
        coded = pa.array(names, _CODED)
    except pa.ArrowTypeError:
        coded = pa.nulls(len(names), _CODED)
    if coded.null_count:  # some are no texts
        coded = pa.array([*map(str, names)], _CODED)
    return Names(coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist())


_CODED = pa.dictionary(pa.int32(), pa.string())


class _Calls(NamedTuple):
    """Ranges that texts are written of."""

    events: list[Event]
    names: Names
    seq: Int64Array
    op_id: Int64Array
    ops: bool

    def name(self, row: int) -> str:
        return self.names.values[int(self.names.number[row])]

    def text(self, row: int, seq: int | None = None, op_id: int | None = None) -> tuple[int, str]:
        """Give kind and text of a range, with other numbers where these are given."""
        own_seq, own_id = int(self.seq[row]), int(self.op_id[row])
        return _text(
            self.name(row),
            events.all_args(self.events[row]),
            None if own_seq == NO_NUMBER else seq or own_seq,
            None if own_id == NO_NUMBER else op_id or own_id,
            op=self.ops,
        )


def _text(
    name: str, args: dict[str, Any], seq: int | None, op_id: int | None, *, op: bool
) -> tuple[int, str]:
    own = name.startswith(OWN)  # torch's quickest annotation makes them ops
    if op and not own and texts.is_op(name, args):
        try:
            return OP, texts.op(name, args, seq, op_id)
        except RecursionError:  # lists in each other without end, where sizes should stand
            return OP, marker.encode_seq(name, seq=seq, op_id=op_id)
    text = marker.decode_annotation(name)
    if text.endswith(_COMPILING):
        return COMPILING, text
    return (MARKER if own and marker.classify(text) is marker.Kind.TRACE else NOTE), text


def _regular(text: str) -> bool:
    """Tell whether all numbers that will be taken out of an op's text are its own."""
    return all(
        text.count(mark) == text.count(f"{mark}{number}")
        for mark, number in ((", seq = ", _SEQ), (", op_id = ", _OP_ID))
    )


def _distinct(numbers: Sequence[Int64Array], sizes: Sequence[int]) -> tuple[Int64Array, Int64Array]:
    """Find distinct combinations: a row of each, and the number of each row."""
    combined = np.zeros(len(numbers[0]), np.int64)
    most = 1
    for number, size in zip(numbers, sizes, strict=True):
        if most * size >= _MOST:
            combined = np.unique(combined, return_inverse=True)[1]
            most = len(combined)
        combined = combined * size + number
        most *= size
    _, first, which = np.unique(combined, return_index=True, return_inverse=True)
    return first, which


def _with_numbers(
    written: pa.Array, stand_in: int, text: Int64Array, number: Int64Array
) -> pa.Array:
    """Give the numbers of ranges: those in their texts, or what is stood in for."""
    missing = written.is_null().to_numpy(zero_copy_only=False)
    values = written.fill_null(0).to_numpy()
    own = (values == stand_in)[text]
    return pa.array(np.where(own, number, values[text]), mask=missing[text])
