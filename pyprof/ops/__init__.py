"""What an op call costs: arithmetic and least memory traffic, from its arguments alone.

Similar ops share a file; each formula is registered by `@op` with its family and a worked
example. The package knows nothing of files, captures and kernels, and never imports torch.
"""

from pyprof.ops.costs import Cost, cost, known, result_shape, with_argument
from pyprof.ops.registry import BPROP, FPROP, OpModel, find, models, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import NOT_STORED, Args, Work

__all__ = [
    "BPROP",
    "FPROP",
    "NOT_STORED",
    "Args",
    "Cost",
    "OpModel",
    "Unknown",
    "Work",
    "cost",
    "find",
    "known",
    "models",
    "op",
    "result_shape",
    "with_argument",
]
