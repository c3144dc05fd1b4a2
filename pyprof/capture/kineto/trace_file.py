"""The trace file: recording windows of torch.profiler exported, joined and compressed.

Between two windows are the profiler calls that end one and begin the other, as Nsight Systems and
nvprof record them.
"""

from __future__ import annotations

import gzip
import mmap
import os
import re
import shutil
import tempfile
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.process import atomic_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from io import BufferedIOBase
    from typing import TypeAlias

    import torch

    from pyprof.capture.kineto.script_profilers import ScriptTrace

    Recorded: TypeAlias = torch.profiler.profile | ScriptTrace

_COMPRESSION = 3  # twice the speed of the usual 6 for a tenth more bytes
_WORK = re.compile(rb'"cat": "(?:cpu_op|kernel|gpu_mem\w+)"')
"""Events that a trace with anything to report contains."""
_SMALL_BYTES = 1 << 18
"""Traces up to this size are checked for rows; larger ones have some."""
_BLOCK = 1 << 20
"""Bytes that are copied at once."""
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_AFTER = b'"traceName"'
"""The key that torch writes after the list of events."""
_MARKS = 4096
"""Bytes at the end of a trace that contain the bounds of its window."""
_BEGIN = re.compile(rb'"Iteration Start: PyTorch Profiler".*?"ts": ([\d.]+)', re.DOTALL)
_END = re.compile(rb'"Record Window End".*?"ts": ([\d.]+)', re.DOTALL)
"""Marks at the bounds of a window, with their times in µs."""


def write_trace(
    recorded: Sequence[Recorded],
    path: Path,
    wanted: re.Pattern[bytes] | None = None,
    events: Callable[[bytes], bytes] | None = None,
) -> bool:
    """Write recordings as one trace; return whether it contains `wanted`, or any work.

    `events` returns further events, as for `join_trace_windows`. Without anything wanted, no file
    is left. Raises OSError; `ElsewhereError` if the file had to be saved elsewhere.
    """
    with atomic_files.temp_directory(path, _choose_folder(path.parent)) as folder:
        packed = Path(folder) / path.name
        windows = _export_windows(recorded, Path(folder) / "plain.json")
        with gzip.open(packed, "wb", _COMPRESSION) as target:
            has_wanted = join_trace_windows(windows, target, wanted or _WORK, events)
        if has_wanted and wanted is None and packed.stat().st_size <= _SMALL_BYTES:
            from pyprof.readers import read  # noqa: PLC0415 - it loads Arrow

            has_wanted = read(packed).activities.num_rows > 0  # ops may only look at memory
        if has_wanted:
            _deliver(packed, path)
    return has_wanted


def _export_windows(recorded: Sequence[Recorded], plain: Path) -> Iterator[Path]:
    """Export the trace of one window after the other, to the same path."""
    for profiler in recorded:
        profiler.export_chrome_trace(str(plain))
        yield plain


class ElsewhereError(OSError):
    """A file could not be written to its path; it was saved as `place`."""

    def __init__(self, place: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self.place = place


def _choose_folder(folder: Path) -> Path:
    """Return the folder, or that for temporary files if it has more free space."""
    other = Path(tempfile.gettempdir())
    if not other.is_dir():  # the script chose it, and removed it
        return folder
    return max((folder, other), key=lambda place: shutil.disk_usage(place).free)


def _deliver(packed: Path, path: Path) -> None:
    """Move a complete file to its path, perhaps on another disk."""
    try:
        if packed.parent.parent == path.parent:
            packed.replace(path)
            return
        with atomic_files.temp_directory(path) as folder:
            shutil.copyfile(packed, Path(folder) / path.name).replace(path)
    except OSError as error:
        refuge = Path(tempfile.mkdtemp(prefix="pyprof-")) / path.name
        shutil.move(packed, refuge)
        raise ElsewhereError(refuge, error) from None


def join_trace_windows(
    windows: Iterable[Path],
    target: BufferedIOBase,
    wanted: re.Pattern[bytes] = _WORK,
    more: Callable[[bytes], bytes] | None = None,
) -> bool:
    """Write traces of torch.profiler as one: the first's metadata, and the events of all.

    All come from one process and share one clock. `more` returns further events, each after a
    comma, for that metadata. Returns whether a trace contains `wanted`. Raises OSError if one is
    incomplete.
    """
    before, rest, header = b"", b"", b""
    has_wanted = False
    for path in windows:
        if not path.stat().st_size:
            raise OSError(_CUT)
        with (
            path.open("rb") as file,
            closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as text,
        ):
            has_wanted = has_wanted or wanted.search(text) is not None
            opening, after = _EVENTS.search(text), text.rfind(_AFTER)
            if opening is None or after < 0:
                raise OSError(_CUT)
            first, last = opening.end(), text.rfind(b"]", 0, after)
            marks = text[max(last - _MARKS, first) : last]
            target.write(_pause(before, marks) if before else text[:first])
            blocks = range(first, last, _BLOCK)
            target.writelines(text[start : min(start + _BLOCK, last)] for start in blocks)
            before, rest, header = marks, rest or text[last:], header or text[:first]
    if more is not None:
        target.write(more(header + rest))  # older torch records its base time after the events
    target.write(rest)
    return has_wanted


_CUT = "torch.profiler could not write its whole trace; is the disk full?"
"""torch itself reports nothing."""


def _pause(before: bytes, after: bytes) -> bytes:
    """Return the calls between two windows as events."""
    thread = f'"pid": {os.getpid()}, "tid": {threading.get_native_id()}, "dur": 0'
    text = ""
    for name, mark, events in (
        ("cudaProfilerStop", _END, before),
        ("cudaProfilerStart", _BEGIN, after),
    ):
        *_, match = mark.finditer(events)
        ts = str(match[1], "ascii")  # us as written: a float would round it
        text += f',\n  {{"ph": "X", "cat": "cuda_runtime", "name": "{name}", "ts": {ts}, {thread}}}'
    return f"{text},\n".encode()
