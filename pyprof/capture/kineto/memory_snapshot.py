"""torch's own record of what its allocator does on GPUs, beside what a profiler records."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from pyprof.capture.request import shown
from pyprof.process import atomic_files

_MOST_EVENTS = 1_000_000
"""Kept, the latest: they are in the host's memory. Blocks that live know their stacks anyway."""


def begin() -> None:
    """Have the allocator recorded, with ranges, from when the script first uses a GPU."""
    torch.cuda._lazy_call(_record)  # type: ignore[no-untyped-call]  # noqa: SLF001 - called when CUDA is there


def _record() -> None:
    record: Any = getattr(torch.cuda.memory, "_record_memory_history", None)
    if record is None:  # an old torch
        return
    try:
        record(max_entries=_MOST_EVENTS, global_record_annotations=True)
    except TypeError:  # one that records no ranges
        with suppress(TypeError):
            record(max_entries=_MOST_EVENTS)


def written(path: Path) -> str:
    """Write what was recorded; say what went wrong, which ends nothing else."""
    try:
        write(path)
    except OSError as error:
        return f"{shown(path)}: {error.strerror or error}; the memory snapshot is lost"
    return ""


def write(path: Path) -> Path | None:
    """Write what was recorded; None where no GPU was used, or this torch records nothing.

    The file is whole or not there. Raises OSError.
    """
    dump: Any = getattr(torch.cuda.memory, "_dump_snapshot", None)
    if dump is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    handle, draft = atomic_files.create_temp(Path(os.path.realpath(path)))
    try:
        dump(draft)
        Path(draft).replace(path)
    finally:
        os.close(handle)
        Path(draft).unlink(missing_ok=True)
    return path
