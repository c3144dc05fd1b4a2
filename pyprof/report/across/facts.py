"""What is kept of each rank: small tables, put under each other rank by rank.

They grow with the number of collectives, steps and layers, not with that of kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyprof import schema

_TEXT = pa.dictionary(pa.int32(), pa.string())

RANKS = pa.schema(
    {
        "rank": pa.int64(),
        "device": pa.int64(),
        "source": pa.string(),
        "clock": pa.string(),  # equal for ranks whose times are of one clock
        "gpu": pa.string(),
        "rows": pa.int64(),  # kernels, copies and so on
        "span_ns": pa.int64(),
        "busy_ns": pa.int64(),
        "idle_ns": pa.int64(),
        "compute_ns": pa.int64(),
        "communication_ns": pa.int64(),
        "exposed_ns": pa.int64(),  # communication while nothing was computed
        "copy_ns": pa.int64(),
        "origin": pa.string(),  # how steps were found; "" for none
    }
)
"""One row per GPU of a rank: times as `timeline.DeviceTime` has them."""

STEPS = pa.schema(
    {
        "rank": pa.int64(),
        "step": pa.int64(),
        "duration_ns": pa.int64(),
        "exposed_ns": pa.int64(),  # communication while nothing was computed
        "warm_up": pa.bool_(),
    }
)
"""One row per step of a rank."""

LAYERS = pa.schema({"rank": pa.int64(), "layer": _TEXT, "gpu_ns": pa.int64()})
"""One row per layer of a rank: the summed time of its own rows, communication left out."""

SIGNATURES = pa.schema(
    {
        "rank": pa.int32(),
        "stream": pa.int64(),
        "kind": _TEXT,  # as ops.collectives.kind has it; null: not told
        "algorithm": _TEXT,  # RING, TREE; null: not told
        "group": _TEXT,  # the process group as the capture names it; null: it does not
        "members": _TEXT,  # the ranks in it, as the capture writes them
        "size": pa.int32(),  # the number of ranks in it
        "bytes": pa.int64(),  # algorithm bytes
    }
)
"""One row per sort of collective of a rank; training repeats itself, so that they are few."""

COLLECTIVES = pa.schema(
    {
        "rank": pa.int32(),
        "signature": pa.int32(),  # which of the rank's rows in `SIGNATURES`
        "start_ns": pa.int64(),  # on the rank's own clock
        "end_ns": pa.int64(),
        "step": pa.int32(),  # null: in none
    }
)
"""One row per kernel of a collective, in GPU-start order: 28 bytes, for there are very many."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The tables of one rank or of many, and sentences about their captures."""

    ranks: pa.Table
    steps: pa.Table
    layers: pa.Table
    signatures: pa.Table
    collectives: pa.Table
    warnings: tuple[tuple[str, str], ...] = ()
    """Whose capture, and what it hides or distorts."""


def table(columns: pa.Schema, rank: int, length: int, **values: object) -> pa.Table:
    """Make a table of the facts of one rank."""
    return schema.table(columns, {"rank": np.full(length, rank), **values}, length)


def merge(one: Facts, other: Facts) -> Facts:
    """Put the facts of later ranks under those of earlier ones: associative, and exact."""
    return Facts(
        pa.concat_tables([one.ranks, other.ranks]),
        pa.concat_tables([one.steps, other.steps]),
        pa.concat_tables([one.layers, other.layers]),
        pa.concat_tables([one.signatures, other.signatures]),
        pa.concat_tables([one.collectives, other.collectives]),
        (*one.warnings, *other.warnings),
    )
