"""Advice on many small kernels: optimizers, element-wise chains, recomputed forward work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.analysis.advice.case import fusible
from pyprof.analysis.advice.registry import rule
from pyprof.analysis.advice.scope import KERNELS, OPS

if TYPE_CHECKING:
    from pyprof.analysis.advice.case import Case
    from pyprof.analysis.advice.finding import Advice
    from pyprof.arrays import Mask


@rule(
    "one kernel takes many parameters: foreach, fused",
    "gradients are clipped, which no constructor of an optimizer changes",
    about="fusion",
    needs=(KERNELS,),
)
def unfused_optimizer(case: Case) -> Advice | None:
    """Find element-wise kernels of the optimizer that work on one parameter after the other."""
    rows, won = fusible(case, case.is_one("dir", "optim") & ~_clips(case))
    return case.advice(
        "unfused_optimizer",
        "the optimizer launches several kernels per parameter",
        "fused=True (or foreach=True) in torch.optim's constructors",
        rows,
        case.most(rows, won),
    )


def _clips(case: Case) -> Mask:
    """Mark the rows of `torch.nn.utils.clip_grad_norm_` and its kin, by their stacks."""
    trace = case.table.records.dictionary("trace")
    clips = [any("clip_grad.py" in frame for frame in frames or ()) for frames in trace.values]
    return np.asarray(np.array([*clips, False])[trace.index])


_OF_MANY = ("AccumulateGrad", "_foreach_")


def _of_many(case: Case) -> Mask:
    """Find what ops do that go through tensors which have nothing to do with each other."""
    names = case.texts["op"]
    of_many = [
        any(part in (name or "") for part in _OF_MANY) for name in names.dictionary.to_pylist()
    ]
    index = pc.fill_null(names.indices, len(of_many)).to_numpy()
    return np.asarray(np.array([*of_many, False])[index])


@rule(
    "one op after another on different tensors: a loop, AccumulateGrad, foreach, DDP",
    "tensors of different sizes",
    about="fusion",
    needs=(KERNELS,),
)
def unfused_pointwise(case: Case) -> Advice | None:
    """Find chains of element-wise kernels over tensors of one size, outside the optimizer."""
    wanted = case.chosen & ~case.is_one("dir", "optim", "comm") & ~_of_many(case)
    rows, won = fusible(case, wanted, chains=True)
    return case.advice(
        "unfused_pointwise",
        "consecutive element-wise kernels work on tensors of the same size",
        "use torch.compile to fuse them, or a fused op (bias + GELU, norm + residual)",
        rows,
        case.most(rows, won),
    )


@rule(
    "an op that a backward node calls for itself, in no module's forward",
    about="recomputation",
    needs=(OPS,),
)
def recomputation(case: Case) -> Advice | None:
    """Find activation checkpointing: forward ops that the backward pass calls again."""
    rows = np.flatnonzero(case.chosen & (case.table.records.numpy("recomputed") == 1))
    return case.advice(
        "recomputation",
        "the backward pass repeats forward work (activation checkpointing)",
        "if memory allows, checkpoint fewer layers, or only cheap ops (selective checkpointing)",
        rows,
        case.most(rows, case.ns[rows]),
    )
