"""Snapshots of torch's CUDA allocator: its own history, recorded beside a capture."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from pyprof.capture.request import relative_to_here
from pyprof.process import atomic_files

_MAX_EVENTS = 1_000_000
"""The latest are kept, in host memory. Live blocks have their stacks anyway."""


def begin() -> None:
    """Record the allocator's history, with ranges, from the script's first use of a GPU."""
    torch.cuda._lazy_call(_record)  # type: ignore[no-untyped-call]  # noqa: SLF001 - called when CUDA is there


def _record() -> None:
    record: Any = getattr(torch.cuda.memory, "_record_memory_history", None)
    if record is None:  # an old torch
        return
    try:
        record(max_entries=_MAX_EVENTS, global_record_annotations=True)
    except TypeError:  # one that records no ranges
        with suppress(TypeError):
            record(max_entries=_MAX_EVENTS)


def write(path: Path) -> str:
    """Write the snapshot, unless no GPU was used, or this torch records none.

    The file appears only when complete. Returns what went wrong, "" if nothing.
    """
    dump: Any = getattr(torch.cuda.memory, "_dump_snapshot", None)
    if dump is None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    try:
        with atomic_files.temp_directory(Path(os.path.realpath(path))) as folder:
            draft = Path(folder) / path.name
            dump(str(draft))
            draft.replace(path)
    except OSError as error:
        return f"{relative_to_here(path)}: {error.strerror or error}; the memory snapshot is lost"
    return ""
