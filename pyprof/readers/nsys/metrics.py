"""GPU metrics that nsys sampled (`--gpu-metrics-devices`): utilisation and clocks of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import ints
from pyprof.readers.device_metrics import meaning, samples
from pyprof.readers.nsys.info import cuda_numbers

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array
    from pyprof.readers.device_metrics import Meaning
    from pyprof.readers.sqlite.tables import Database

_VALUES, _NAMES, _GPUS = "GPU_METRICS", "TARGET_INFO_GPU_METRICS", "TARGET_INFO_GPU"
_GPU = 0xFF
"""The bits of a type's id that are the GPU's number."""
_NO_ID = -1


def read(db: Database) -> pa.Table:
    """Read the samples of known metrics; an empty table if there are none."""
    if not {_VALUES, _NAMES} <= db.tables():
        return schema.SAMPLES.empty_table()
    meanings = _meanings(db)
    ids = sorted({metric for _, metric in meanings})
    if not ids:
        return schema.SAMPLES.empty_table()
    time = "timestamp" if "timestamp" in db.columns(_VALUES) else "rawTimestamp"
    columns: dict[str, type] = {time: int, "typeId": int, "metricId": int, "value": int}
    if not set(columns) <= db.columns(_VALUES):
        return schema.SAMPLES.empty_table()
    wanted = pa.array(ids, pa.int64())
    rows = db.read(
        _VALUES, columns, lambda rows: rows.filter(pc.is_in(rows.column("metricId"), wanted))
    )
    kind, metric = (ints(rows.column(name), _NO_ID) for name in ("typeId", "metricId"))
    which = np.full(len(kind), -1)
    for row, (of_kind, of_metric) in enumerate(meanings):
        which[(kind == of_kind) & (metric == of_metric)] = row
    stamp, value = (ints(rows.column(name), _NO_ID) for name in (time, "value"))
    rows_used = np.flatnonzero((which >= 0) & (stamp >= 0))
    device = _devices(db, kind[rows_used] & _GPU)
    return samples(
        device,
        stamp[rows_used],
        [*meanings.values()],
        which[rows_used],
        value[rows_used].astype(np.float64),
    )


def _meanings(db: Database) -> dict[tuple[int, int], Meaning]:
    """Return the meaning of each metric, by type and id, which differ from chip to chip."""
    rows = db.read(_NAMES, {"typeId": int, "metricId": int, "metricName": str})
    named = zip(
        ints(rows.column("typeId"), _NO_ID).tolist(),
        ints(rows.column("metricId"), _NO_ID).tolist(),
        rows.column("metricName").to_pylist(),
        strict=True,
    )
    return {(kind, metric): entry for kind, metric, name in named if (entry := meaning(name or ""))}


def _devices(db: Database, gpu: Int64Array) -> Int64Array:
    """Return CUDA's numbers of GPUs, which kernels have, for nsys's own."""
    device = gpu.copy()
    for own, cuda in cuda_numbers(db).items():
        if cuda >= 0:
            device[gpu == own] = cuda
    return device
