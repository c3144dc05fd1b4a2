"""Describes files that no reader takes, with the command that makes one that a reader takes.

Other profilers' files are recognised by their content; only formats without a signature by suffix.
"""

from __future__ import annotations

import re
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from pyprof.readers import SQLITE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ROCPD = "rocprofv3 --output-format rocpd"
_TORCH = "record the PyTorch program with pyprof capture or torch.profiler"
_TO_SQLITE = "nsys export --type sqlite REPORT.nsys-rep"
_CHROME = "write its trace with prof.export_chrome_trace('net.json.gz')"
_DICT_LINES = b'{"kShortName"', b"{'kShortName'"

JAX = (
    "a profile of JAX, TensorFlow or XLA, whose tracks are not torch.profiler's; open it with "
    "XProf or Perfetto; "
    f"to read one here, {_TORCH}"
)
"""The message for traces of JAX and the like, which look like torch.profiler's from outside."""
PADDLE = (
    "a trace of Paddle's profiler; record the program with nsys profile -t cuda,nvtx --export "
    "sqlite"
)
"""The message for traces of Paddle, whose names of kernels end in their durations."""

_ASCEND = (
    "a database of Ascend's profiler; make trace_view.json of the folder *_ascend_pt around it: "
    "python -c \"from torch_npu.profiler.profiler import analyse; analyse('FOLDER', "
    "export_type='text')\""
)
_NO_STRINGS = (
    "an nsys export without its table of strings, StringIds, so without any name; export it whole: "
    f"{_TO_SQLITE}"
)
_RPD = (
    "a trace of rocmProfileData (.rpd), not of rocprofv3; record the program with "
    f"{_ROCPD} --kernel-trace --hip-runtime-trace --marker-trace"
)


class _Kind(NamedTuple):
    """A format: what a file of it looks like, and what it is."""

    what: str
    begins: tuple[bytes, ...] = ()
    contains: re.Pattern[bytes] | None = None
    """Within the first bytes."""
    suffixes: tuple[str, ...] = ()
    """For formats that their first bytes do not identify."""

    def matches(self, path: Path, head: bytes) -> bool:
        if self.suffixes and path.name.endswith(self.suffixes):
            return True
        if self.contains is not None:
            return head.startswith(self.begins or b"") and self.contains.search(head) is not None
        return bool(self.begins) and head.startswith(self.begins)


_PROTOBUF = (b"\x0a",)
"""The tag of a message's first field, with which profiles in protocol buffers begin."""
_KINDS = (
    _Kind("it is output of pyprof parse, which the other commands read", _DICT_LINES),
    _Kind(
        "a Parquet file, which other commands read if pyprof parse wrote it; of a report of Nsight "
        f"Systems, make SQLite: {_TO_SQLITE}",
        (b"PAR1",),
    ),
    _Kind(
        f"an Arrow or HDF5 file; of a report of Nsight Systems, make SQLite: {_TO_SQLITE}",
        (b"ARROW1", b"\xff\xff\xff\xff", b"\x89HDF\r\n"),
    ),
    _Kind(
        f"Nsight Systems' JSON, without the tables of its SQLite export: {_TO_SQLITE}",
        contains=re.compile(rb'^\s*\{"Type":\s*\d+,'),
    ),
    _Kind(
        f"a report of nsys stats; name the .sqlite file that it made, or run {_TO_SQLITE}",
        contains=re.compile(
            rb"^(?:Generating SQLite|Processing \[|\W*Time \(%\),Total Time|Start \(ns\),Duration)"
        ),
    ),
    _Kind(
        "text or CSV of nvprof, without the order of launches; record its database: "
        "nvprof -o net.sql",
        contains=re.compile(rb"^==\d+== (?:NVPROF|Profiling)"),
    ),
    _Kind(
        f"an execution trace of PyTorch, without times; record with torch.profiler and {_CHROME}",
        contains=re.compile(rb'^\s*\{\s*"schema":\s*"[^"]*chakra'),
    ),
    _Kind(
        f"sums of torch.profiler; {_CHROME}",
        contains=re.compile(rb"^-[- ]+\s+Name\s+Self CPU|^[^\n]*\.py\(\d+\): [^\n]* \d+\r?\n"),
    ),
    _Kind(
        "an archive or a compressed file; unpack it and name what it holds",
        contains=re.compile(
            rb"(?s)^(?:PK\x03\x04|\x28\xb5\x2f\xfd|\xfd7zXZ\0|BZh|7z\xbc\xaf|.{257}ustar)"
        ),
    ),
    _Kind(
        "a pointer of Git LFS instead of the file: git lfs pull",
        (b"version https://git-lfs.github.com/",),
    ),
    _Kind(
        "a gzip file that is damaged or holds no trace; unzip it (gunzip FILE) and name what it "
        "holds, or capture it again",
        (b"\x1f\x8b",),
    ),
    _Kind("a report of Nsight Compute: ncu --import FILE --csv --page raw > ncu.csv", (b"NVR\0",)),
    _Kind(
        "an unfinished report of Nsight Systems; import it with its QdstrmImporter: "
        "QdstrmImporter -i FILE",
        suffixes=(".qdstrm",),
    ),
    _Kind(
        "rocprofv3's JSON, which no command converts; record again with its default format: "
        f"{_ROCPD}",
        contains=re.compile(rb'^\s*\{\s*"rocprofiler-sdk-(?:json-)?tool"'),
    ),
    _Kind(
        f"rocprofv3's CSV, which no command converts; record again with {_ROCPD}",
        contains=re.compile(rb'^"?Kind"?,"?(?:Agent_Id|Domain|Function)"?,'),
    ),
    _Kind(
        "a profile of Triton's Proton, sums by call path without a kernel's times; view it with "
        f"proton-viewer; to read one here, {_TORCH}",
        contains=re.compile(rb'^\s*\[\s*\{\s*"(?:children|frame|metrics)"\s*:'),
    ),
    _Kind(
        "an XSpace profile (.xplane.pb) of JAX, TensorFlow or XLA, which no command converts; open "
        f"it with XProf; to read one here, {_TORCH}",
        _PROTOBUF,
        re.compile(rb"/(?:host|device):|Task Environment|#Chip"),
        (".xplane.pb",),
    ),
    _Kind(
        "a Perfetto trace, as rocprofv3 and ROCm Systems Profiler write them, which no command "
        f"converts; record again with {_ROCPD}, or ROCPROFSYS_USE_ROCPD=ON rocprof-sys-run",
        _PROTOBUF,
        # a packet, its length, and a field with which packets begin: clock snapshot, timestamp,
        # sequence, track event, interned data, flags, configuration, marker, track descriptor
        re.compile(
            rb"^\x0a[\x80-\xff]{0,3}[\x00-\x7f](?:[\x32\x40\x50\x5a\x62\x68]|[\x8a\x9a]\x02|\xe2\x03)"
        ),
        (".pftrace", ".perfetto-trace"),
    ),
)

_TABLES = (
    # tables that must all exist, and the description of the file
    ({"CUPTI_ACTIVITY_KIND_KERNEL"}, _NO_STRINGS),
    ({"NVTX_EVENTS"}, _NO_STRINGS),
    ({"rocpd_api", "rocpd_op"}, _RPD),
    ({"TASK", "STRING_IDS"}, _ASCEND),
    ({"PYTORCH_API"}, _ASCEND),
    ({"CANN_API"}, _ASCEND),
    ({"COMPUTE_TASK_INFO"}, _ASCEND),
)


def describe(path: Path, head: bytes) -> str:
    """Describe a file that is not a capture; `head` is its first bytes."""
    if not head.strip(b"\0"):
        return "it begins with zeros, as after an interrupted export"
    if head.startswith(SQLITE):
        return _database(path)
    if is_memory_snapshot(head):
        return "a torch memory snapshot, which pyprof memory reads"
    for kind in _KINDS:
        if kind.matches(path, head):
            return kind.what
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # not merely a character cut at the end of the head
            return "an unknown binary file"
    return "a text file"


def is_memory_snapshot(head: bytes) -> bool:
    """Whether a file is a pickle that torch.cuda.memory._dump_snapshot() wrote."""
    keys = (b"device_traces", b"segments")
    return head[:1] == b"\x80" and any(key in head for key in keys)


def _database(path: Path) -> str:
    import sqlite3  # noqa: PLC0415 - other files need not load it

    tables: set[str] = set()
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db,
    ):
        query = "SELECT CAST(name AS TEXT) FROM sqlite_master WHERE type IN ('table', 'view')"
        tables = {str(name) for (name,) in db.execute(query)}
    return next(
        (what for needed, what in _TABLES if needed <= tables),
        "an SQLite file without a profiler's tables",
    )


def is_jax(process_names: Iterable[str]) -> bool:
    """Whether a trace comes from JAX, TensorFlow or XLA, by the names of its processes."""
    return any(re.match(r"(?:/job:[^ ]{1,99})?/(?:host|device):", name) for name in process_names)
