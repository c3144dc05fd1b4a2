"""What a trace says outside of its events: devices, clock base, rank, versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyprof import schema
from pyprof.readers.kineto.columns import instant, ints, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.readers.kineto.stream import Event

    Header = Mapping[str, Any]


def base_ns(header: Header) -> int:
    """Give what all times of the trace are relative to, in ns since 1970."""
    return instant(header.get("baseTimeNanoseconds"))


def rank(header: Header) -> int | None:
    """Give the rank of the process in a distributed job; None where there was none."""
    info = header.get("distributedInfo")
    if isinstance(info, dict):
        return whole(info.get("rank"))
    return whole(header.get("pyprof_rank"))  # from pyprof capture


def host(event: Event) -> int | None:
    """Give the process that runs on the CPU, where an event of the metadata says so; else None."""
    args = event.get("args")
    told = isinstance(args, dict) and args.get("labels") == "CPU"
    return whole(event.get("pid")) if told else None


def version(header: Header) -> str | None:
    """Give torch's version; traces say it only where whoever captured them added it."""
    for key in ("torch_version", "pytorch_version"):
        if isinstance(found := header.get(key), str):
            return found
    return None


def devices(header: Header, used: Sequence[int]) -> pa.Table:
    """Give the GPUs that the trace describes.

    On AMD an event names its device by the node's number and the description by the process's, as
    everywhere where only some devices are visible: one that is used but not described is like the
    others, where these are all alike.
    """
    listed = header.get("deviceProperties")
    found = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    ids = [whole(item.get("id")) for item in found]
    if len(found) == 1 and len(used) == 1:
        ids = list(used)
    elif _alike(found):
        missing = [number for number in used if number not in ids]
        found, ids = [*found, *found[:1] * len(missing)], [*ids, *missing]
    return schema.table(
        schema.DEVICES,
        {
            "device": ints(ids, pa.int32()),
            "name": [str(item["name"]) if "name" in item else None for item in found],
            "sm_count": ints([item.get("numSms") for item in found], pa.int32()),
            "cc_major": ints([item.get("computeMajor") for item in found], pa.int32()),
            "cc_minor": ints([item.get("computeMinor") for item in found], pa.int32()),
            "memory_bytes": ints([item.get("totalGlobalMem") for item in found]),
        },
    )


def _alike(found: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether devices are of one kind; what of the memory is free differs by the driver."""
    return len({tuple(str(item.get(key)) for key in _KIND) for item in found}) == 1


_KIND = ("name", "numSms", "computeMajor", "computeMinor")
