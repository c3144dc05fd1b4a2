"""Annotations of graph nodes that torch writes: where in the source each node was captured.

A pickle `{node id: [dict]}` of what the user marked kernels with, or JSON, mostly gzip, of
`{node id: "file:line:function\\n…"}`, the innermost frame first. They are joined by node id.
"""

from __future__ import annotations

import pickle
import re
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from pyprof import marker, schema
from pyprof.arrays import MISSING, ints, or_null
from pyprof.errors import CaptureError
from pyprof.marker import templates
from pyprof.readers import sidecars as names
from pyprof.readers.kineto import texts
from pyprof.readers.kineto.columns import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MAX_BYTES = 256 << 20
"""No file of annotations holds more, unzipped."""
_MAX_FRAMES, _MAX_MARKS = 512, 64
_LONGEST = 4096
"""Everything in a pickle is bounded: a few bytes can refer to the same text many times."""
_GZIP = b"\x1f\x8b"
_LOW_BITS = (1 << 32) - 1
"""Of a node's id: its number in its graph; the higher bits are the graph's."""
_STEP_NS = 4
"""From node to node on their made-up thread: ranges last 2 ns, with the node in the middle."""
_VIA = schema.VIAS.index("graph node")

_LABELS = ("annotation", "name", "label", "scope", "str")
"""Keys of a marked node's label; the first one present counts."""
_STACKS = ("stack", "stack_trace", "trace", "frames")
"""Keys of its stack; the first one present counts."""
_NO_LABELS = frozenset({*_STACKS, "stream"})  # the stream is torch's own number


class Annotation(NamedTuple):
    """The annotation of a graph node in a file."""

    frames: tuple[tuple[str, str], ...]
    """(`file:line`, function), outermost first."""
    labels: tuple[str, ...]
    """The user's labels, outermost first."""


def is_one(path: Path) -> bool:
    """Whether a file that the user gave has annotations rather than a trace, by its name."""
    return "annotation" in path.name.lower() or path.suffix in names.PICKLES


def find_annotations(trace: Path, rank: int | None) -> list[Path]:
    """Find a trace's files of annotations: next to it or, as torch writes them, a folder above.

    A rank in a file's name must be the trace's: `rank`, else the number that begins its name.
    """
    leading = re.match(r"(\d{1,9})(?!\d)", trace.name)
    ours = rank if rank is not None else int(leading[0]) if leading else None
    files = _listed(trace.parent)
    files += [path for path in _listed(trace.parent.parent) if path.match(names.ANNOTATIONS_ABOVE)]
    theirs = [_RANK.search(path.name) for path in files]
    known = [int(match[1]) if match else None for match in theirs]
    if ours is None and len({*known}) > 1:
        return [path for path, number in zip(files, known, strict=True) if number is None]
    return [p for p, n in zip(files, known, strict=True) if ours is None or n in {None, ours}]


_RANK = re.compile(r"rank[_-]?(\d{1,9})(?!\d)")


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(
            path for path in folder.iterdir() if names.is_annotations(path) and path.is_file()
        )
    except OSError:
        return []


def read(path: Path) -> dict[int, Annotation]:
    """Read a file of annotations. Raises CaptureError if it is not one."""
    try:
        with path.open("rb") as file:
            raw = _unzip(file, path)
        decoded = orjson.loads(raw) if raw.lstrip()[:1] == b"{" else _unpickle(raw, path)
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}; check its permissions") from None
    except orjson.JSONDecodeError:
        raise CaptureError(f"{path}: no annotations of graph nodes: damaged JSON") from None
    if not isinstance(decoded, dict):
        raise CaptureError(f"{path}: no annotations of graph nodes: keys are not node ids")
    made = {whole_number(key): _annotation(value) for key, value in decoded.items()}
    return {key: value for key, value in made.items() if key is not None and value != _NOTHING}


_NOTHING = Annotation((), ())


def _unzip(file: BinaryIO, path: Path) -> bytes:
    raw = file.read(_MAX_BYTES + 1)
    if raw.startswith(_GZIP):
        try:
            raw = zlib.decompressobj(wbits=31).decompress(raw, _MAX_BYTES + 1)
        except zlib.error:
            raise CaptureError(f"{path}: no annotations of graph nodes: damaged gzip") from None
    if len(raw) > _MAX_BYTES:
        raise CaptureError(f"{path}: no annotations of graph nodes: over {_MAX_BYTES >> 20} MiB")
    return raw


class _PlainUnpickler(pickle._Unpickler):  # noqa: SLF001 - bounded where the C one is not
    """Accepts numbers, texts, lists and dicts; refuses every class and function.

    Also refuses opcodes that allocate memory before the bytes to fill it are read.
    """

    dispatch = {  # noqa: RUF012 - as inherited
        code: load
        for code, load in pickle._Unpickler.dispatch.items()  # noqa: SLF001 - as above
        if code not in {pickle.BYTEARRAY8[0], pickle.NEXT_BUFFER[0]}
    }

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - as inherited
        raise pickle.UnpicklingError(f"it contains {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:  # noqa: ANN401 - as inherited
        del pid
        raise pickle.UnpicklingError("it refers to external data")


def _unpickle(raw: bytes, path: Path) -> object:
    import io  # noqa: PLC0415 - rarely needed

    try:
        return _PlainUnpickler(io.BytesIO(raw)).load()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged pickle raises anything
        why = str(error) if isinstance(error, pickle.UnpicklingError) else "it is damaged"
        raise CaptureError(f"{path}: no annotations of graph nodes: {why[:100]}") from None


def _annotation(value: object) -> Annotation:
    if isinstance(value, str):
        return Annotation(_frames(value), ())
    entries = value if isinstance(value, list) else [value]
    marks = [_read_mark(entry) for entry in entries[:_MAX_MARKS]]
    frames = next((entry.frames for entry in reversed(marks) if entry.frames), ())
    return Annotation(frames, tuple(label for entry in marks for label in entry.labels))


def _read_mark(entry: object) -> Annotation:
    """Read one mark: a text, or a dict with a name and perhaps a stack."""
    if isinstance(entry, str):
        return Annotation((), (entry[:_LONGEST],) if entry.strip() else ())
    if not isinstance(entry, dict):
        return _NOTHING
    stack = next((entry[key] for key in _STACKS if isinstance(entry.get(key), (str, list))), "")
    lines = stack.splitlines() if isinstance(stack, str) else stack
    text = "\n".join(s[:_LONGEST] for s in lines[:_MAX_FRAMES] if isinstance(s, str))
    labels = (entry.get(key) for key in _LABELS)
    label = next((text for text in labels if isinstance(text, str) and text.strip()), None)
    if label is None:
        plain = [(k, v) for k, v in entry.items() if isinstance(k, str) and k not in _NO_LABELS]
        scalars = [
            (k, v) for k, v in plain if isinstance(v, (str, float)) or whole_number(v) is not None
        ]
        label = ", ".join(f"{k[:_LONGEST]}={str(v)[:_LONGEST]}" for k, v in scalars[:_MAX_MARKS])
    return Annotation(_frames(text), (str(label)[:_LONGEST],) if label else ())


def _frames(stack: str) -> tuple[tuple[str, str], ...]:
    """Parse `file:line:function` lines, the innermost first."""
    frames = []
    for line in stack.splitlines()[:_MAX_FRAMES]:
        place, _, function = line.strip().rpartition(":")
        file, _, number = place.rpartition(":")
        if file and number.isascii() and number.isdecimal():
            frames.append((place, function))
    return tuple(reversed(frames))


def nodes(
    node_id: pa.ChunkedArray, annotation_of_id: Mapping[int, Annotation]
) -> list[Annotation | None]:
    """Return the annotation of each distinct node id, or None.

    Ids that lack the number of their graph, on either side, only match if they belong to one graph.
    """
    low: dict[int, set[int]] = {}
    for key in annotation_of_id:
        low.setdefault(key & _LOW_BITS, set()).add(key)
    used = node_id.unique().drop_null().to_pylist()
    graphs = {number >> 32 for number in used}
    annotation_of_node = []
    for number in used:
        keys = low.get(number & _LOW_BITS, set())
        bare = number >> 32 == 0 or (len(graphs) == 1 and keys == {number & _LOW_BITS})
        annotation_of_node.append(
            annotation_of_id.get(number)
            or (annotation_of_id[min(keys)] if bare and len(keys) == 1 else None)
        )
    return annotation_of_node


def rows(
    node_id: pa.ChunkedArray, annotation_of_id: Mapping[int, Annotation], thread: int
) -> tuple[pa.Table, pa.Table, pa.Array] | None:
    """Return ranges and graph nodes, on a thread of their own, and the node of each activity.

    None if no node is annotated.
    """
    used = node_id.unique().drop_null()
    said = nodes(node_id, annotation_of_id)
    known = [entry for entry in said if entry is not None]
    if not known:
        return None
    place = np.full(len(said) + 1, MISSING)
    place[[n for n, entry in enumerate(said) if entry is not None]] = np.arange(len(known))
    index = pa.compute.index_in(node_id.combine_chunks(), value_set=used)
    node = place[ints(index)]
    times = np.arange(len(known)) * _STEP_NS
    graph_nodes = schema.table(
        schema.GRAPH_NODES,
        {"thread": np.full(len(known), thread, np.int32), "time": times + 1,
         "via": np.full(len(known), _VIA, np.int8)},
    )  # fmt: skip
    return _ranges(known, times, thread), graph_nodes, or_null(node)


def _ranges(known: list[Annotation], times: np.ndarray[Any, Any], thread: int) -> pa.Table:
    written = [
        (int(times[n]), text)
        for n, entry in enumerate(known)
        for text in (
            *map(marker.encode_layer, entry.labels),
            *([texts.trace(entry.frames)] if entry.frames else ()),
        )
    ]
    start = np.array([begun for begun, _ in written], np.int64)
    return schema.table(
        schema.RANGES,
        {
            "start": start,
            "end": start + 2,
            "thread": np.full(len(start), thread, np.int32),
            "style": np.full(len(start), schema.NESTED, np.int8),
            **templates.columns(pa.array([text for _, text in written], pa.string())),
        },
    )
