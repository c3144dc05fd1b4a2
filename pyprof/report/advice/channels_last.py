"""Layout transforms around convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.roles import Role
from pyprof.report.advice.registry import rule

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.registry import Advice


@rule
def channels_last(case: Case) -> Advice | None:
    """Find kernels that only rearrange the tensors of convolutions: all their time could go."""
    rows = np.flatnonzero(case.family("conv") & case.role(Role.LAYOUT))
    return case.advice(
        "channels_last",
        "tensors are rearranged around convolutions",
        "model.to(memory_format=torch.channels_last), and the input too",
        rows,
        case.most(rows, case.ns[rows]),
    )
