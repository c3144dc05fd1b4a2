"""What did the work, in a word: the GPU, another accelerator, or the CPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.records.records import Records

GPU, CPU = "GPU", "CPU"

_WORDS = (
    (re.compile(r"\b(NPU|XPU|HPU|MTIA|TPU|MLU|GCU|IPU)(?![a-zA-Z])"), None),
    (re.compile(r"\bAscend"), "NPU"),
    (re.compile(r"\bGaudi"), "HPU"),
)
"""Names of devices that are not GPUs, and what users call them; None: the matched word."""


def word(device: str | None) -> str:
    """Return what users call a device, by its name: `NPU`; GPU by default."""
    if device == schema.KINDS[schema.CPU]:
        return CPU
    for pattern, said in _WORDS:
        if match := pattern.search(device or ""):
            return said or match[1]
    return GPU


def processor(devices: Iterable[str | None]) -> str:
    """Return the word for what worked, by the names of the devices; GPU if there are two kinds.

    CPU only if there is nothing else.
    """
    words = {word(device) for device in devices}
    words = words - {CPU} or words
    return words.pop() if len(words) == 1 else GPU


def processor_of(records: Records) -> str:
    """Name what did the work of some records."""
    name = records.dictionary("gpu")
    used = np.unique(name.index).tolist()
    return processor([*name.values, None][index] for index in used)


def processor_of_both(a: str, b: str) -> str:
    """Return the word for the time of two captures."""
    if CPU in (a, b):
        return b if a == CPU else a
    return a if a == b else GPU
