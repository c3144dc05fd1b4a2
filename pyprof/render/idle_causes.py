"""What the causes of idle time mean, for people; `pyprof.analysis.time.idle` finds them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pyprof.prof.processor import CPU

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CAUSES = MappingProxyType(
    {
        "launch": "the host launches too slowly: ops shorter than their launch",
        "sync": "the host had waited for the GPU, so no work was queued",
        "copy": "the host was held up in a copy",
        "alloc": "the host allocated or freed memory",
        "load": "a launch took over 1 ms: kernel loading, or the profiler",
        "host": "the host did something else: data loading, Python",
        "queue": "work was queued, but began late: start-up, other streams",
        "peer": "work was queued, but another GPU of the process was at work",
        "graph": "between two kernels of one CUDA graph replay",
        "unknown": "the launch is not in the capture",
    }
)
"""Causes of idle time on a GPU."""

CPU_CAUSES = MappingProxyType(
    {
        "loading": "in ranges of data loading",
        "ops": "in ops, but without work: tensors of Python values, views, item()",
        "dispatch": "up to 0.1 ms around ops: Python, PyTorch's dispatch, the profiler",
        "host": "longer between two ops: Python, files, other libraries",
    }
)
"""Causes for ops that were timed on the CPU."""

MEANINGS = MappingProxyType({**CAUSES, **CPU_CAUSES, **CAUSES})
"""Causes on a GPU, then those on a CPU only."""


def meanings(processors: Iterable[str]) -> Mapping[str, str]:
    """Return what the causes mean on these devices: on CPUs alone, or not."""
    return CPU_CAUSES if all(each == CPU for each in processors) else MEANINGS
