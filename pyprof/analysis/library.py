"""Which library the captured program uses: what helps a PyTorch program helps no other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyprof.answers.summary_answer import PYTORCH

if TYPE_CHECKING:
    from pyprof.prof.table import Table
    from pyprof.schema import Capture

INDUCTOR = re.compile(
    r"\btriton_(?:(?:poi|red|per|tem|for|mm|bmm|unk)_|_\d)|\b(?:graph_\d+_)?cpp_fused_"
)
"""How torch.compile names its kernels: `triton_poi_fused_add_0`, at first `triton__0d1d2de`; on a
CPU `cpp_fused_add_0`."""
_PYTORCH = re.compile(rf"\bat::|\baten::|_ZN2at|\bc10\b|torch|{INDUCTOR.pattern}")
_OTHERS = (
    ("CuPy", re.compile(r"^cupy_")),
    ("TensorFlow", re.compile("tensorflow")),
    ("XLA", re.compile(r"^(?:loop|input|gemm)_(?:\w+_)?fusion")),
    ("Numba", re.compile("cudapy")),
)


def library_of(table: Table, capture: Capture | None = None) -> str | None:
    """Return the library that ops and kernel names point to: `PyTorch`, `CuPy`; else None.

    A single op or kernel of PyTorch is enough for PyTorch: programs also mix libraries. So is a
    range of torch.profiler's: all kernels may be in graphs, where none has an op.
    """
    op = table.dictionary_array("op")
    names = _names(table)
    of_profiler = capture is not None and capture.tool == "kineto" and capture.ranges.num_rows
    if of_profiler or op.null_count < len(op) or any(map(_PYTORCH.search, names)):
        return PYTORCH
    return next((library for library, of in _OTHERS if any(map(of.search, names))), None)


def is_compiled(table: Table) -> bool:
    """Whether torch.compile generated some of the kernels."""
    return any(map(INDUCTOR.search, _names(table)))


def is_autotuned(table: Table) -> bool:
    """Whether torch.compile chose templates for products, which it does in mode max-autotune."""
    return any(map(_TEMPLATE.search, _names(table)))


_TEMPLATE = re.compile(r"\btriton_tem_(?!\w*attention)\w*(?:mm|conv)")
"""Of products and convolutions; FlexAttention has a template in every mode, which may be called
`triton_tem_fused_0`."""


def _names(table: Table) -> list[str]:
    return [name or "" for name in table.records.dictionary("kLongName").values]
