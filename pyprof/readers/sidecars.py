"""The files next to a capture that are read with it, by their names.

Must be quick to import: it is used before any work.
"""

from __future__ import annotations

import fnmatch
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from pyprof.readers import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KERNEL_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
NODE_MAPPINGS = "inductor_provenance_tracking_node_mappings"
PROVENANCE = (
    f"*{KERNEL_STACKS}*.json",
    f"*{NODE_MAPPINGS}*.json",
    "kernel_information.json",
    "dedicated_log_torch_trace_*.log",
)
"""Files that torch.compile writes about its kernels."""

ANNOTATIONS_ABOVE = "kernel_annotations_rank*"
"""Files that torch writes about graph nodes, also a folder above a trace."""

PICKLES = (".pkl", ".pickle")


def is_annotations(path: Path) -> bool:
    """Whether a file has annotations of graph nodes, by its name."""
    return "annotation" in path.name.lower() and path.name.endswith((*PICKLES, ".json", ".json.gz"))


def read_with_captures(folder: Path) -> Iterator[Path]:
    """Return the files that may be read with captures of a folder, though they were not named."""
    for name in _names(folder):
        if any(fnmatch.fnmatch(name, each) for each in PROVENANCE) or is_annotations(folder / name):
            yield folder / name
    for name in fnmatch.filter(_names(folder.parent), ANNOTATIONS_ABOVE):
        yield folder.parent / name
    yield from _listed(folder / settings.CAPTURE_TRACES)


def in_graph_captures(place: Path) -> Iterator[Path]:
    """Return the files that may be read in a folder that --with names."""
    yield from _listed(place if place.is_dir() else place.parent)
    yield from _listed(place / settings.CAPTURE_TRACES)


def _listed(folder: Path) -> Iterator[Path]:
    return (folder / name for name in _names(folder))


def _names(folder: Path) -> list[str]:
    """Return the names in a folder; as texts, since a folder can hold many thousands."""
    with suppress(OSError):
        return os.listdir(folder)  # noqa: PTH208 - as above
    return []
