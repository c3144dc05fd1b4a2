"""What did the work: the GPU, or in a capture without one the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof import schema
from pyprof.arrays import distinct_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.records.records import Records

GPU, CPU = "GPU", "CPU"


def processor(devices: Iterable[str | None]) -> str:
    """Name what worked, given the names of the devices: CPU only where there is nothing else."""
    return CPU if {*devices} == {schema.KINDS[schema.CPU]} else GPU


def processor_of(records: Records) -> str:
    """Name what did the work of some records."""
    name = records.dictionary("gpu")
    used = distinct_values(name.index).tolist()
    return processor([*name.values, None][place] for place in used)


def processor_of_both(a: str, b: str) -> str:
    """Whose time that of two captures is."""
    return CPU if a == b == CPU else GPU
