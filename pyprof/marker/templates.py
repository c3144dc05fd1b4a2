"""Texts of ranges as Arrow columns: templates, and the numbers that differ from call to call.

emit_nvtx writes an op's sequence number, its own id, and the ids of the ops that made its inputs.
Without them millions of texts come down to some hundreds of templates; with them each text can be
restored exactly. A text of any other form is its own template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import string_concat
from pyprof.string_concat import StringPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array


NUMBERED = pa.struct(
    {
        "text": pa.dictionary(pa.int32(), pa.string()),  # the template
        "seq": pa.int64(),
        "op_id": pa.int64(),
        # (op_id - id, output) of the op that made each input, as int32; differences repeat every
        # step
        "inputs": pa.dictionary(pa.int32(), pa.binary()),
    }
)
"""A text: its template, and the numbers removed from it; null if it has none."""

NAMES = tuple(field.name for field in NUMBERED)

_SEQ, _OP_ID = ", seq = ", ", op_id = "
_INPUTS = ", input_op_ids = ["
_PAIR = r"\((?:0|[1-9]\d{0,17}),(?:0|-?[1-9]\d{0,8})\)"
_PAIRS = rf", input_op_ids = \[(?P<pairs>{_PAIR}(?:, {_PAIR})*)\]$"
_DIGITS = 18
"""Numbers of more digits may not fit an int64."""
_TEN = 10
_NOBODY = np.iinfo(np.int32).min
"""Stands for the id 0: no op made the input."""
_PAIR_BYTES = 8


def split(texts: pa.Array) -> pa.StructArray:
    """Split texts into templates and numbers: `NUMBERED`, one for each; null stays null."""
    unknown = texts.is_null()
    encoded = texts.fill_null("").dictionary_encode()  # most texts repeat
    bounds, data = _bytes(encoded.dictionary)
    padded = np.append(data, np.uint8(0))
    seq, seq_at = _number(encoded.dictionary, _SEQ, bounds, padded)
    op_id, op_at = _number(encoded.dictionary, _OP_ID, bounds, padded)
    # When texts are joined, the op_id is expected after the sequence number.
    before = op_at.begin < seq_at.end
    op_at = _Extent(*(np.where(before, seq_at.end, place) for place in op_at))
    inputs, inputs_at = _inputs(encoded.dictionary, np.where(op_at.there, op_id, 0), bounds)
    parts = (
        _cut_out(bounds, data, (*seq_at, *op_at, *inputs_at)).dictionary_encode(),
        pa.array(seq, mask=~seq_at.there),
        pa.array(op_id, mask=~op_at.there),
        inputs,
    )
    return pa.StructArray.from_arrays(
        [part.take(encoded.indices) for part in parts], fields=[*NUMBERED], mask=unknown
    )


def columns(texts: pa.Array) -> dict[str, pa.Array]:
    """Return the columns of `split`, by name."""
    return dict(zip(NAMES, split(texts).flatten(), strict=True))


class _Extent(NamedTuple):
    """Where something is in the bytes of all texts: from `begin` to before `end`."""

    begin: Int64Array
    end: Int64Array

    @property
    def there(self) -> NDArray[np.bool_]:
        return self.end > self.begin


def _bytes(texts: pa.Array) -> tuple[Int64Array, NDArray[np.uint8]]:
    """Return where each text begins, and the last ends, in the bytes of all texts."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.zeros(len(texts) + 1, np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    text_bytes = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return bounds.astype(np.int64) - bounds[0], text_bytes


def _number(
    texts: pa.StringArray, mark: str, bounds: Int64Array, padded: NDArray[np.uint8]
) -> tuple[Int64Array, _Extent]:
    """Read the number after a mark, if it is written as Python would and fits into int64."""
    index = pc.find_substring(texts, mark).to_numpy()
    begin = bounds[:-1] + np.where(index < 0, 0, index + len(mark))
    limit = np.where(index < 0, begin, bounds[1:])
    value, end = np.zeros(len(begin), np.int64), begin.copy()
    for _ in range(_DIGITS):
        digit = padded[end] - np.uint8(ord("0"))  # smaller bytes wrap around
        more = (digit < _TEN) & (end < limit)
        if not more.any():
            break
        value = np.where(more, value * 10 + digit, value)
        end += more
    longer = (padded[end] - np.uint8(ord("0")) < _TEN) & (end < limit)
    filled = (padded[begin] == ord("0")) & (end > begin + 1)
    return value, _Extent(begin, np.where(longer | filled, begin, end))


def _inputs(
    texts: pa.StringArray, op_id: Int64Array, bounds: Int64Array
) -> tuple[pa.DictionaryArray, _Extent]:
    """Read the ids of the ops that made an op's inputs, at the end of a text."""
    rows = np.flatnonzero(pc.ends_with(texts, ")]").to_numpy(zero_copy_only=False))
    spelt = pc.struct_field(pc.extract_regex(texts.take(pa.array(rows)), _PAIRS), "pairs")
    rows, spelt = rows[spelt.is_valid().to_numpy(zero_copy_only=False)], spelt.drop_null()
    listed = pc.split_pattern(pc.utf8_trim(pc.replace_substring(spelt, "), (", ","), "()"), ",")
    maker, output = listed.values.cast(pa.int64()).to_numpy().reshape(-1, 2).T
    offset = listed.offsets.to_numpy() // 2
    count = np.diff(offset)
    back = np.where(maker == 0, _NOBODY, np.repeat(op_id[rows], count) - maker)
    fits = (np.abs(back) < -_NOBODY) | (maker == 0)
    fits_all = np.ones(len(rows), bool)
    fits_all[np.repeat(np.arange(len(rows)), count)[~fits]] = False
    pairs = np.stack([back, output], axis=1).astype(np.int32)
    bytes_at = offset * np.int32(_PAIR_BYTES)
    payloads = pa.Array.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(bytes_at), pa.py_buffer(pairs)]
    ).dictionary_encode()
    code = np.full(len(texts), -1, np.int32)
    code[rows[fits_all]] = payloads.indices.to_numpy()[fits_all]
    end = bounds[1:]
    length = np.zeros(len(texts), np.int64)
    length[rows[fits_all]] = (pc.binary_length(spelt).to_numpy() + len(_INPUTS) + 1)[fits_all]
    column = pa.DictionaryArray.from_arrays(pa.array(code, mask=code < 0), payloads.dictionary)
    return column, _Extent(end - length, end)


def _cut_out(
    bounds: Int64Array, data: NDArray[np.uint8], cuts: Sequence[Int64Array]
) -> pa.StringArray:
    """Cut parts out of all texts: each begins at one of the cuts, and ends at the next."""
    edges = np.concatenate([[0], np.stack(cuts, axis=1).reshape(-1), [len(data)]])
    parts = pa.Array.from_buffers(
        pa.binary(),
        len(edges) - 1,
        [None, pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(data)],
    )
    left = parts.take(pa.array(np.arange(0, len(parts), 2))).buffers()[2]
    length = np.diff(bounds) - sum(np.subtract(cuts[1::2], cuts[::2]))
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(length, dtype=np.int32)])
    return pa.Array.from_buffers(pa.string(), len(length), [None, pa.py_buffer(offsets), left])


def texts_of_table(table: pa.Table) -> pa.StructArray:
    """Return the texts of a table that has them as columns, such as ranges, as one array."""
    columns_of_texts = table.select([*NAMES]).unify_dictionaries()
    columns = [column.combine_chunks() for column in columns_of_texts.columns]
    return pa.StructArray.from_arrays(columns, fields=[*NUMBERED])


def spell(numbered: pa.StructArray) -> pa.StringArray:
    """Join templates and numbers to texts; some at a time, to stay in the processor's caches."""
    starts = range(0, len(numbered), _AT_ONCE)
    parts = [
        string_concat.join_element_wise(pieces_of(numbered.slice(start, _AT_ONCE)))
        for start in starts
    ]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [pa.array([], pa.string())])


_AT_ONCE = 1 << 15


def pieces_of(
    numbered: pa.StructArray, escape: Callable[[str], str] = lambda text: text
) -> list[StringPart]:
    """Return the parts of texts for `join_element_wise`; all but the numbers are escaped."""
    text, seq, op_id, inputs = numbered.flatten()
    code = text.indices.to_numpy()
    used = np.flatnonzero(np.bincount(code, minlength=len(text.dictionary)))
    index = np.zeros(len(text.dictionary), np.int32)
    index[used] = np.arange(len(used))
    parts = []
    for template in text.dictionary.take(pa.array(used)).to_pylist():  # split where numbers were
        before, seq_mark, rest = template.partition(_SEQ)
        if not seq_mark:
            before, rest = "", template
        between, id_mark, after = rest.partition(_OP_ID)
        parts.append((before + seq_mark, between + id_mark, after))
    head, middle, tail = (
        StringPart(pa.array([escape(each[which]) for each in parts], pa.string()), index[code])
        for which in range(3)
    )
    return [
        head,
        string_concat.per_row(seq.cast(pa.string())),
        middle,
        string_concat.per_row(op_id.cast(pa.string())),
        tail,
        *_format_inputs(op_id, inputs),
    ]


def length(numbered: pa.StructArray) -> int:
    """Estimate the length of all texts together, in bytes."""
    text, *_, inputs = numbered.flatten()
    return sum(
        int(np.bincount(part.indices.drop_null(), minlength=len(part.dictionary)) @ each)
        for part in (text, inputs)
        for each in [pc.binary_length(part.dictionary).to_numpy()]
    )


def _format_inputs(op_id: pa.Array, inputs: pa.DictionaryArray) -> Iterator[StringPart]:
    """Format the ids of the ops that made the inputs of each op."""
    if inputs.null_count == len(inputs):
        return
    has_inputs = inputs.is_valid().to_numpy(zero_copy_only=False)
    bounds, data = _bytes(inputs.dictionary)
    bounds = bounds // _PAIR_BYTES
    code = inputs.indices.drop_null().to_numpy()
    count = np.diff(bounds)[code]
    offset = np.append(0, np.cumsum(count))
    pair = np.repeat(bounds[code] - offset[:-1], count) + np.arange(offset[-1])
    back, output = data.view(np.int32).reshape(-1, 2)[pair].T
    own = op_id.fill_null(0).to_numpy()[has_inputs]
    maker = np.where(back == _NOBODY, 0, np.repeat(own, count) - back)
    last = np.zeros(len(pair), np.int32)
    last[offset[1:] - 1] = 1
    each = string_concat.join_element_wise(
        [
            string_concat.per_row(pa.array(maker).cast(pa.string())),
            StringPart(pa.array([","]), np.zeros_like(last)),
            string_concat.per_row(pa.array(output).cast(pa.string())),
            StringPart(pa.array(["), (", ")]"]), last),
        ]
    )
    begin = StringPart(pa.array([f"{_INPUTS}("]), has_inputs - 1)
    yield begin
    yield StringPart(
        string_concat.slices(each, offset), np.where(has_inputs, np.cumsum(has_inputs) - 1, -1)
    )
