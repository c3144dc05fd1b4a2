"""What `pyprof peaks` writes: all cards in a table, one with its sources, or CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof import sanitize
from pyprof.answers.peaks_answer import DATASHEET, MEASURED
from pyprof.gpu.peaks import RATE_KEYS
from pyprof.quantities import DASH, number
from pyprof.render.text.formatting import heading, layout_table, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.answers.peaks_answer import CardPeaks

_SHOWN = {
    # header: keys of rates, the first that the device has
    "FP64": ("float64",),
    "FP64 TC": ("float64 tensor",),
    "FP32": ("float32",),
    "FP16": ("float16",),
    "TF32 TC": ("tf32 tensor",),
    "FP16 TC": ("float16 tensor",),
    "FP16 sum": ("float16 tensor, float16 sum",),
    "BF16 TC": ("bfloat16 tensor",),
    "FP8 TC": ("float8 tensor",),
    "FP4 TC": ("float4 tensor",),
    "INT8 TC": ("int8 tensor",),
}


def overview(rows: Sequence[CardPeaks]) -> Iterator[str]:
    """Show each device on a line, and doubts below."""
    for basis in (DATASHEET, MEASURED):
        cells = []
        for row in (row for row in rows if row.basis == basis):
            rates = (
                next((row.tflops[key] for key in keys if key in row.tflops), None)
                for keys in _SHOWN.values()
            )
            cells.append((
                f"{row.gpu}{'*' if row.doubts else ''}",
                row.compute_capability or DASH,
                DASH if row.sm_count is None else str(row.sm_count),
                *map(number, rates),
                number(row.memory_gbs),
            ))  # fmt: skip
        if cells:
            yield heading(f"Dense TFLOP/s and GB/s, {basis}; TC: Tensor Cores or matrix cores")
            yield from layout_table(cells, ("GPU", "CC", "SMs", *_SHOWN, "GB/s"), (0,))
            yield ""
    doubts = dict.fromkeys(doubt for row in rows for doubt in row.doubts)
    if doubts:
        yield "* Sources disagree:"
        for doubt in doubts:
            yield from wrapped(doubt, "  ")


def each(rows: Sequence[CardPeaks]) -> Iterator[str]:
    """Show each device with every rate that is known, its sources and doubts."""
    for row in rows:
        details = [f"compute capability {row.compute_capability}"] if row.compute_capability else []
        details += [f"{row.sm_count} SMs"] if row.sm_count else []
        yield heading(", ".join([f"{row.gpu} ({row.basis})", *details]))
        rates = [(f"  {key}", number(rate), "TFLOP/s") for key, rate in row.tflops.items()]
        yield from table(
            [*rates, ("  memory", number(row.memory_gbs), "GB/s")], ("", "", ""), left=(0, 2)
        )[1:]
        yield from (f"  source: {source}" for source in row.sources)
        yield from (f"  doubt: {doubt}" for doubt in row.doubts)


def as_csv(rows: Sequence[CardPeaks]) -> bytes:
    """Write every figure, quoted; unknown ones are empty."""
    keys = list(dict.fromkeys([*RATE_KEYS, *(key for row in rows for key in row.tflops)]))
    header = ["gpu", "basis", "cc", "sms", *keys, "gb_s", "sources", "doubts"]
    lines = (
        [
            row.gpu,
            row.basis,
            row.compute_capability,
            row.sm_count,
            *map(row.tflops.get, keys),
            row.memory_gbs,
            "; ".join(row.sources),
            "; ".join(row.doubts),
        ]
        for row in rows
    )
    return sanitize.csv_text([header, *lines], quoted=True).encode()
