"""Traces of the capture of graphs, next to a trace of their replay, and how both are joined.

Serving frameworks write such traces into a folder `capture_traces`, one for each batch size, with
`execution_details.json`: a list of `{"file", "batch_size", "mode"}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import set_column
from pyprof.errors import CaptureError
from pyprof.marker import serving_step, serving_steps
from pyprof.readers import settings
from pyprof.readers.kernel_launches import named
from pyprof.readers.kineto.columns import concat, shifted, whole_number
from pyprof.readers.kineto.file.stream import Trace
from pyprof.readers.kineto.gather import gather
from pyprof.readers.kineto.gather import rank as rank_of
from pyprof.readers.kineto.graphs import annotations as graph_annotations
from pyprof.readers.sidecars import is_annotations

if TYPE_CHECKING:
    from pyprof.readers.kineto.graphs.nodes import Captured

DETAILS = "execution_details.json"
_MAX_BYTES = 16 << 20
"""No list of files is longer."""


@dataclass(frozen=True, slots=True)
class File:
    """A trace of the capture of graphs, before it is read."""

    path: Path
    batch_size: int | None = None
    mode: str | None = None


@dataclass(slots=True)
class CaptureFiles:
    """The traces found, and warnings about others."""

    files: list[File] = field(default_factory=list)
    annotations: list[Path] = field(default_factory=list)
    batch_sizes: set[int] = field(default_factory=set)
    """All batch sizes that are listed as captured, whether or not their files exist."""
    warnings: list[str] = field(default_factory=list)


def attached(capture: schema.Capture, path: Path, own: Captured) -> schema.Capture:
    """Add to a trace how its graphs were captured: in itself, and in other traces next to it.

    `own` are the graphs that were captured in the trace itself. Without a graph launch no file is
    looked for. A trace that cannot be used leads to a warning.
    """
    numbered = capture.activities["node_id"].null_count < len(capture.activities)
    if not (numbered or named(capture.calls, "GraphLaunch").any()):
        return capture
    built = _Built(capture)
    if own.graphs:
        built.add_own(path, own)
    ranks = pc.unique(capture.activities["rank"]).drop_null()
    rank = ranks[0].as_py() if len(ranks) == 1 else None
    capture_files = traces(path, rank)
    for file in _drop_unused(capture_files, capture.ranges):
        _add(built, file, capture_files.warnings, rank)
    for place in dict.fromkeys(capture_files.annotations if numbered else ()):
        built.annotate(place, capture_files.warnings)
    if not built.recordings and not capture_files.warnings:
        return capture
    return built.capture(capture_files)


def traces(path: Path, rank: int | None = None) -> CaptureFiles:
    """Find the traces of the capture of a trace's graphs: named by the user, or next to it."""
    chosen = settings.graph_captures()
    folder = path.parent / settings.CAPTURE_TRACES
    ours = settings.own_captures_path(path).name
    capture_files = CaptureFiles()
    for place in [Path(name) for name in chosen] or [folder] * folder.is_dir():
        _find_at(place, capture_files)
    if not chosen:
        capture_files.annotations += graph_annotations.find_annotations(path, rank)
    # A file that `pyprof capture` wrote for another trace of the folder belongs to that one.
    capture_files.files = [
        file
        for file in dict.fromkeys(capture_files.files)
        if not _is_same_file(file.path, path)
        and (chosen or f"{settings.OURS}." not in file.path.name or file.path.name == ours)
    ]
    return capture_files


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _find_at(place: Path, capture_files: CaptureFiles) -> None:
    if place.is_dir():
        inside = place / settings.CAPTURE_TRACES
        _look_into(inside if inside.is_dir() else place, capture_files)
    elif place.name == DETAILS:
        _look_into(place.parent, capture_files)
    elif place.is_file() and graph_annotations.is_one(place):
        capture_files.annotations.append(place)
    elif place.is_file():
        file_of_name = {file.path.name: file for file in _read_listed(place.parent, [])}
        file = file_of_name.get(place.name, File(place))
        capture_files.files.append(file)
        capture_files.batch_sizes |= {file.batch_size} - {None}  # type: ignore[arg-type]
    else:
        raise CaptureError(f"{place}: no such file or folder; check the names of graph captures")


def _look_into(folder: Path, capture_files: CaptureFiles) -> None:
    try:
        _add_listed(folder, capture_files)
    except OSError as error:
        capture_files.warnings.append(f"{folder}: {error.strerror or error}; check its permissions")


def _add_listed(folder: Path, capture_files: CaptureFiles) -> None:
    listed = _read_listed(folder, capture_files.warnings)
    names = {file.path.name for file in listed}
    for file in listed:
        if file.batch_size is not None:
            capture_files.batch_sizes.add(file.batch_size)
        if file.path.is_file():
            capture_files.files.append(file)
        else:
            size = f" of batch size {file.batch_size}" if file.batch_size is not None else ""
            capture_files.warnings.append(
                f"{file.path}: the trace of the capture{size} is missing: "
                "kernels of its graphs have no op"
            )
    inside = sorted(folder.iterdir())
    capture_files.annotations += [
        path for path in inside if is_annotations(path) and path.is_file()
    ]
    capture_files.files += [
        File(other)
        for other in inside
        if other.name.endswith((".json", ".json.gz"))
        and other.name not in {*names, DETAILS}
        and other not in capture_files.annotations
        and other.is_file()
    ]


def _read_listed(folder: Path, warnings: list[str]) -> list[File]:
    """Return the traces listed in a folder's `DETAILS` file; warn if it is not a list."""
    details = folder / DETAILS
    if not details.is_file():
        return []
    try:
        if details.stat().st_size > _MAX_BYTES:
            raise ValueError  # noqa: TRY301 - handled like a file without a list
        entries = orjson.loads(details.read_bytes())
        return [file for entry in entries if (file := _listed_file(folder, entry))]
    except (OSError, ValueError, TypeError):
        warnings.append(f"{details}: not a list of traces; it gives no batch sizes")
        return []


def _listed_file(folder: Path, entry: Any) -> File | None:  # noqa: ANN401 - JSON can be anything
    name = entry.get("file") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name or "\0" in name:
        return None
    mode = entry.get("mode")
    return File(
        folder / Path(name).name,  # a list from another machine may hold its paths
        whole_number(entry.get("batch_size")),
        mode if isinstance(mode, str) else None,
    )


def _drop_unused(capture_files: CaptureFiles, ranges: pa.Table) -> list[File]:
    """Return the traces without those of batch sizes that no step uses."""
    texts = ranges["text"].combine_chunks()
    steps = (serving_step(text) for text in texts.dictionary.to_pylist())
    sizes = {step.batch for step in steps if step and step.batch}
    if not sizes or any(file.batch_size is None for file in capture_files.files):
        return capture_files.files
    known = tuple(capture_files.batch_sizes)
    needed = {serving_steps.chosen(size, known) for size in sizes}
    return [file for file in capture_files.files if file.batch_size in needed]


def _add(built: _Built, file: File, warnings: list[str], rank: int | None) -> None:
    try:
        if rank is not None:
            header = Trace(file.path)
            header.open()
            if rank_of(header.header) not in {None, rank}:
                return  # another rank's
        gathered = gather(file.path)
        captured, ranges = gathered.captured(), gathered.ranges()
    except (
        CaptureError,
        OSError,
        ValueError,
        IndexError,
        OverflowError,
        pa.ArrowException,
    ) as error:
        why = " ".join(str(error).removeprefix(f"{file.path}: ").split())[:200]
        warnings.append(f"{file.path}: cannot be used as the trace of a capture: {why}")
        return
    if gathered.trace.cut:
        warnings.append(
            f"{file.path}: is cut short, so launches may lack their ops: not used; capture it again"
        )
    elif not captured.whole:
        warnings.append(
            f"{file.path}: the capture of a graph begins or ends outside this trace: not used; "
            "capture it again, including the whole capture of all graphs"
        )
    elif not captured.graphs:
        warnings.append(f"{file.path}: no graph was captured in this trace: not used")
    else:
        built.add(_add_batch_size(file, ranges), captured, ranges, gathered.threads())


def _add_batch_size(file: File, ranges: pa.Table) -> File:
    """Fill in the batch size from the range around the capture."""
    if file.batch_size is not None:
        return file
    texts = ranges["text"].combine_chunks().dictionary.to_pylist()
    sizes_and_modes = {
        size_and_mode for text in texts if (size_and_mode := serving_steps.captured(text))
    }
    if len(sizes_and_modes) != 1:
        return file
    size, mode = sizes_and_modes.pop()
    return replace(file, batch_size=size, mode=file.mode or mode)


class _Built:
    """A capture to which recordings are added one by one."""

    def __init__(self, capture: schema.Capture) -> None:
        self._capture = capture
        self._threads = [capture.threads]
        self._count = len(capture.threads)
        self._ids = capture.activities["node_id"]
        self._node = capture.activities["graph_node"].combine_chunks()
        self._nodes = capture.graph_nodes
        self._launches: list[pa.Table] = []
        self._ranges: list[pa.Table] = []
        self._graphs: list[int] = []
        self._first: list[int | None] = []
        """The first thread of each recording."""
        self.recordings: list[File] = []

    def add_own(self, path: Path, captured: Captured) -> None:
        """Add what was captured in the trace itself."""
        self._add_launches(captured, 0)
        self._first.append(None)
        self.recordings.append(File(path))

    def add(self, file: File, captured: Captured, ranges: pa.Table, threads: pa.Table) -> None:
        """Add another trace; its threads are others than the trace's own, even if ids are equal."""
        self._add_launches(captured, self._count)
        self._ranges.append(shifted(ranges, self._count, "thread", "forward_thread"))
        self._threads.append(threads)
        self._first.append(self._count)
        self._count += len(threads)
        self.recordings.append(file)

    def annotate(self, path: Path, warnings: list[str]) -> None:
        """Add a file's annotations of nodes; for a node in two files, the earlier one counts."""
        try:
            annotation_of_id = graph_annotations.read(path)
        except CaptureError as error:
            warnings.append(str(error))
            return
        if (rows := graph_annotations.rows(self._ids, annotation_of_id, self._count)) is None:
            return
        ranges, nodes, place = rows
        before = self._nodes
        self._node = pc.coalesce(self._node, pc.add(place, len(before)).cast(pa.int32()))
        self._nodes = pa.concat_tables([before, nodes])
        self._ranges.append(ranges)
        self._threads.append(schema.table(schema.THREADS, {"pid": [None], "tid": [None]}))
        self._first.append(self._count)
        self._count += 1
        self.recordings.append(File(path))

    def _add_launches(self, captured: Captured, threads: int) -> None:
        moved = shifted(captured.launches, threads, "thread")
        self._launches.append(shifted(moved, len(self._graphs), "graph"))
        self._graphs += [len(self.recordings)] * captured.graphs

    def capture(self, capture_files: CaptureFiles) -> schema.Capture:
        """Return the capture with everything that was added."""
        sizes = capture_files.batch_sizes | {
            file.batch_size for file in self.recordings if file.batch_size is not None
        }
        graphs = schema.GraphCaptures(
            launches=concat(schema.CAPTURED_LAUNCHES, self._launches),
            graphs=schema.table(schema.CAPTURED_GRAPHS, {"recording": self._graphs}),
            recordings=schema.table(
                schema.RECORDINGS,
                {
                    "file": [str(file.path) for file in self.recordings],
                    "batch_size": [file.batch_size for file in self.recordings],
                    "mode": [file.mode for file in self.recordings],
                    "first_thread": self._first,
                },
            ),
            ranges=concat(schema.RANGES, self._ranges),
            batch_sizes=tuple(sorted(sizes)),
        )
        return replace(
            self._capture,
            activities=set_column(self._capture.activities, "graph_node", self._node),
            graph_nodes=self._nodes.combine_chunks(),
            threads=pa.concat_tables(self._threads).combine_chunks(),
            graph_captures=graphs,
            warnings=(*self._capture.warnings, *capture_files.warnings),
        )
