"""Transposes between NCHW and NHWC around convolutions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.advice.registry import rule

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


_BETWEEN_LAYOUTS = re.compile(
    r"(?<!folded)(?:nchw_?(?:to|2)_?nhwc|nhwc_?(?:to|2)_?nchw)(?!folded)|batched_transpose",
    re.IGNORECASE,
)
"""Of cuDNN and MIOpen. All else that prepares a convolution is part of how it is computed."""


@rule(
    "transforms of cuDNN's algorithm: Winograd, FFT, im2col, flipped filters",
    "few channels padded within channels-last: folded NHWC",
)
def channels_last(case: Case) -> Advice | None:
    """Find kernels that only rearrange the tensors of convolutions: all their time could go."""
    rows = np.flatnonzero(case.family("conv") & case.named(_BETWEEN_LAYOUTS))
    return case.advice(
        "channels_last",
        "tensors are rearranged around convolutions",
        "model.to(memory_format=torch.channels_last), and the input too",
        rows,
        case.most(rows, case.ns[rows]),
    )
