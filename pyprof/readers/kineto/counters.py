"""Counters of a trace: samples of a device (`ph: "C"`), and measurements of each kernel."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa

from pyprof import schema
from pyprof.readers.device_metrics import meaning, samples
from pyprof.readers.kineto.columns import Interned, nanoseconds, whole_number
from pyprof.readers.kineto.file.events import all_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.readers.device_metrics import Meaning
    from pyprof.readers.kineto.columns import Timed
    from pyprof.readers.kineto.file.events import Event

_GPU = re.compile(r"GPU (\d{1,4})\b")
_MAX_DEVICES = 1 << 12
"""Greater than every number of a GPU."""


Sample: TypeAlias = "tuple[int, float, Meaning, float]"
"""Device, time in µs as in the trace, metric, value."""


def read_samples(counters: Timed) -> Iterator[Sample]:
    """Yield the values of known metrics in counter events."""
    for event, us in zip(counters.events, counters.us.tolist(), strict=True):
        args = all_args(event)
        device = _device(event, args)
        title = str(event.name)
        for key, value in args.items():
            entry = meaning(key or title) or meaning(title)
            if entry and device is not None and (number := _number(value)) is not None:
                yield device, us, entry, number


def sample_table(listed: Sequence[Sample], base_ns: int) -> pa.Table:
    """Build the table of all samples of a trace."""
    if not listed:
        return schema.SAMPLES.empty_table()
    devices, us, entries, values = zip(*listed, strict=True)
    meanings = Interned()
    which = np.array([meanings[entry] for entry in entries])
    time = nanoseconds(us) + base_ns
    return samples(np.array(devices), time, [*meanings], which, np.array(values, np.float64))


def _device(event: Event, args: Mapping[str, Any]) -> int | None:
    """Return a counter's device: from its process, `GPU 0 Counters`, or its number."""
    for text in (args.get("device"), event.pid, event.tid, event.name):
        if isinstance(text, str) and (match := _GPU.search(text)):
            return int(match[1])
    number = whole_number(args.get("device", event.pid))
    return number if number is not None and 0 <= number < _MAX_DEVICES else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def of_kernels(events: Sequence[Event], text: bytes) -> pa.Array:
    """Return the counters that CUPTI's range profiler measured for kernels, as JSON.

    `text` is the JSON of all arguments, which rarely contains a metric.
    """
    if b"__" not in text:
        return pa.nulls(len(events), pa.string())
    from pyprof.readers.ncu.metrics import known_name, measured  # noqa: PLC0415 - needs them
    from pyprof.readers.ncu.tables import Kernel, Numbers, Value  # noqa: PLC0415 - nearly no trace

    texts = []
    for event in events:
        metrics = {
            metric: Value(str(float(value)), "nsecond" if "time_duration" in name else "")
            for name, value in all_args(event).items()
            if "__" in name
            and (metric := known_name(_KINETO.get(name, name)))
            and _number(value) is not None
        }
        kernel = Kernel({}, metrics)
        counters = measured(kernel, Numbers([kernel])) if metrics else {}
        kept = {key: value for key, value in counters.items() if key in schema.COUNTERS}
        texts.append(orjson.dumps({"source": "args", **kept}).decode() if kept else None)
    return pa.array(texts, pa.string())


_KINETO = {"kineto__tensor_core_insts": "sm__inst_executed_pipe_tensor.sum"}
"""Kineto's own names of metrics."""
