"""Samples of devices as written by nsys and Kineto."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests.builders import Work
from tests.capture_files.model import Rows

NSYS_NAMES = {
    "tensor_pct": "Tensor Active [Throughput %]",
    "read_pct": "DRAM Read Bandwidth [Throughput %]",
    "write_pct": "DRAM Write Bandwidth [Throughput %]",
    "clock_mhz": "GPC Clock Frequency [MHz]",
    "other": "PCIe RX Throughput [Throughput %]",
}
_TYPE = 0x1_0000_0000_0100
"""The high bits that nsys adds to the number of the GPU."""


def sampled(
    work: Sequence[Work], rate_of: Callable[[Work], float], interval_ns: int
) -> tuple[list[int], list[float]]:
    """Average what work does over intervals, one piece after the other."""
    last = max(w.at[1] for w in work)
    times = np.arange(interval_ns, last + 2 * interval_ns, interval_ns)
    values = np.zeros(len(times))
    for piece in work:
        start, end = piece.at
        rate = rate_of(piece)
        for place in range((start // interval_ns), min(end // interval_ns + 1, len(times))):
            begins, ends = times[place] - interval_ns, times[place]
            values[place] += rate * max(min(end, ends) - max(start, begins), 0) / interval_ns
    return times.tolist(), values.tolist()


def nsys_metrics(
    metrics: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    *,
    gpu: int = 0,
    first_id: int = 4,
    time: str = "timestamp",
) -> dict[str, Rows]:
    """Write the tables of `--gpu-metrics-devices`, values rounded as there."""
    names: Rows = []
    values: Rows = []
    for number, (metric, (times, sampled_values)) in enumerate(metrics.items(), first_id):
        kind = _TYPE + gpu
        names.append({"typeId": kind, "sourceId": 1, "typeName": "GPU Metrics [ga100]",
                      "metricId": number, "metricName": NSYS_NAMES[metric]})  # fmt: skip
        values += [
            {time: at, "typeId": kind, "metricId": number, "value": round(value)}
            for at, value in zip(times, sampled_values, strict=True)
        ]
    return {"TARGET_INFO_GPU_METRICS": names, "GPU_METRICS": values}


def kineto_counters(
    name: str, samples: tuple[Sequence[int], Sequence[float]], *, key: str | None = None,
    pid: object = "GPU 0 Counters",
) -> list[dict[str, Any]]:  # fmt: skip
    return [
        {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": at / 1000,
         "args": {name if key is None else key: value}}
        for at, value in zip(*samples, strict=True)
    ]  # fmt: skip
