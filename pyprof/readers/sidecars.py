"""The files next to a capture that are read with it, by their names.

Loads in no time, for it is asked before any work.
"""

from __future__ import annotations

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
    """Return the files that may be read with captures of a folder, though nobody named them."""
    for path in _listed(folder):
        if any(path.match(pattern) for pattern in PROVENANCE) or is_annotations(path):
            yield path
    yield from (path for path in _listed(folder.parent) if path.match(ANNOTATIONS_ABOVE))
    yield from _listed(folder / settings.CAPTURE_TRACES)


def in_graph_captures(place: Path) -> Iterator[Path]:
    """Return the files that may be read in a folder that --with names."""
    yield from _listed(place if place.is_dir() else place.parent)
    yield from _listed(place / settings.CAPTURE_TRACES)


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return [*folder.iterdir()]
    return []
