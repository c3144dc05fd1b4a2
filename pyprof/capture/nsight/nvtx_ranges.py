"""Ranges that a script marks by `torch.cuda.nvtx`, where they would fail or be lost.

A build of torch without CUDA has no NVTX and raises; torch.profiler does not record NVTX.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import torch.cuda.nvtx

from pyprof.capture.replacement import replace_attributes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyprof.instrument.ranges.emit import Sink

_HOME: Any = torch.cuda.nvtx


class _Depth(threading.local):
    value = 0


class NvtxRanges:
    """Replaces torch's NVTX binding, and calls it if there is one."""

    def __init__(self, sink: Sink) -> None:
        self.lacking = not hasattr(torch._C, "_nvtx")  # noqa: SLF001 - what torch itself asks
        """Whether torch was built without NVTX."""
        self.used = False
        """Whether the script marked anything."""
        self._sink = sink
        self._real: Any = _HOME._nvtx  # noqa: SLF001 - the one place that all of them look at
        self._depth = _Depth()
        self._numbers = itertools.count(1)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as torch's own
        return getattr(self._real, name)

    def installed(self) -> AbstractContextManager[None]:
        """Replace the binding until the `with` ends."""
        return replace_attributes((_HOME, "_nvtx", self))

    def rangePushA(self, text: str) -> int:  # noqa: N802 - torch's name
        """Open a range; return its depth."""
        self.used = True
        self._sink.push(str(text))
        if not self.lacking:
            return int(self._real.rangePushA(text))
        self._depth.value += 1
        return self._depth.value - 1

    def rangePop(self) -> int:  # noqa: N802 - torch's name
        """Close the innermost range; return its depth, -2 (as NVTX) if none was open."""
        self._sink.pop()
        if not self.lacking:
            return int(self._real.rangePop())
        if not self._depth.value:
            return -2
        self._depth.value -= 1
        return self._depth.value

    def markA(self, text: str) -> Any:  # noqa: ANN401, N802 - as torch's
        """Mark an instant; no report shows it."""
        return None if self.lacking else self._real.markA(text)

    def rangeStartA(self, text: str) -> int:  # noqa: N802 - torch's name
        """Start a range that need not nest; nothing is attributed to it."""
        return next(self._numbers) if self.lacking else int(self._real.rangeStartA(text))

    def rangeEnd(self, number: int) -> None:  # noqa: N802 - torch's name
        """End such a range."""
        if not self.lacking:
            self._real.rangeEnd(number)
