"""The same kernels on another NVIDIA GPU, by measured shares of the roofline of both."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.analysis.advice.rule_context import MIN_KNOWN
from pyprof.analysis.back_test import tried
from pyprof.analysis.time.timeline import COMPUTE, activity_classes
from pyprof.analysis.whatif.kernels import Prediction
from pyprof.gpu.kernel_dtypes import HALF
from pyprof.gpu.peaks import Device, cards_like, find_card, peaks
from pyprof.gpu.peaks.efficiency import (
    POWER_LIMITED,
    efficiency,
    measured_as,
    measured_cards,
    measured_here,
)
from pyprof.gpu.peaks.formula import is_cuda
from pyprof.gpu.role_rules import Role
from pyprof.quantities import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.analysis.whatif.kernels import Kernels
    from pyprof.arrays import Mask
    from pyprof.gpu.peaks import Peaks

OPTION = "--gpu"
LIMITED, STAND_IN = "--gpu of 70 W", "--gpu by its chip"
"""The keys of outcomes with a card that is limited by its power, or measured as another board."""
_PRODUCTS = ("gemm", "bmm")
DTYPE = "float32"
"""The only type that is calibrated."""
_MEMORY = (
    *(Role.ELEMENTWISE, Role.RANDOM, Role.REDUCE, Role.LOSS, Role.OPTIMIZER),
    *(Role.COPY, Role.LAYOUT, Role.FILL, Role.MEMSET, Role.MEMCPY),
)
_ON_DEVICE = re.compile("memcpy.*(?:DtoD|Device -> Device)", re.IGNORECASE)


class Board(NamedTuple):
    """A GPU with the card whose measured shares of the roofline hold for it."""

    name: str
    """As in captures."""
    peaks: Peaks
    measured: str

    @property
    def is_stand_in(self) -> bool:
        """Whether another board of its chip was measured, or this one by the user."""
        return self.measured != self.peaks.name or measured_here(self.measured)


def rule(name: str) -> Callable[[Kernels], Prediction | str]:
    """Return the rule of a target GPU."""
    return lambda kernels: predict(kernels, name)


def predict(kernels: Kernels, name: str) -> Prediction | str:
    """Scale each kernel's share of the roof by how its family's share differs between the cards.

    Kernels of unknown cost change as the others do together; copies from and to the host and
    communication stay.
    """
    target, context = board(name), kernels.context
    if isinstance(target, str):
        return target
    # neither communication nor copies between the GPU and the host
    computes = activity_classes(context.table.records) == COMPUTE
    computed = context.chosen & (computes | context.named(_ON_DEVICE))
    boards = _boards(context, computed)
    if isinstance(boards, str):
        return boards
    if kernels.dtype is not None:
        return f"efficiencies were measured in {DTYPE} only"
    if {(each.peaks.name, each.measured) for each in boards.values()} == {
        (target.peaks.name, target.measured)
    }:
        return f"it ran on {target.peaks.name}"
    ratio = np.where(computed, _ratios(kernels, boards, target), np.nan)
    known, ns = np.isfinite(ratio), kernels.ns
    share = ns[known].sum() / max(ns[computed].sum(), 1)
    if share < MIN_KNOWN:
        return (
            f"only {percent(share)} of the time is of products, norms, softmax and"
            f" point-wise kernels in {DTYPE} whose cost is known;"
            f" at least {percent(MIN_KNOWN)} must be"
        )
    mean = float((ns[known] * ratio[known]).sum() / ns[known].sum())
    rows = np.flatnonzero(computed)
    times = ns[rows] * np.where(known, ratio, mean)[rows]
    outcomes = tried(outcomes_of(target, *boards.values()))
    return Prediction(
        change=f"{OPTION} {name}",
        kernels=kernels.retimed(rows, times, outcomes.interval),
        rows=rows,
        formula="time x ratio of the roofs x ratio of the shares of them that a family of kernels"
        " reaches on both",
        assumption=_assumption(target, *boards.values()),
        validation=outcomes.text,
        code=f"run it on {target.peaks.name}",
    )


def board(name: str) -> Board | str:
    """Return a GPU by its name, or why nothing can be predicted for it."""
    peaks_known, measured = peaks(Device(name)), measured_as(name)
    if peaks_known is None or not peaks_known.rates:
        cards = [card.name for card in cards_like(name)]
        if find_card(name) is not None:
            return f"{name} is a part of {cards[0]}"
        return (
            f"{name} may be {' or '.join(cards)}" if cards else f"no GPU {name}: see pyprof peaks"
        )
    if not is_cuda(peaks_known.name):
        return f"{name} is of another vendor, for which no rule has held (errors of 23 to 38 %)"
    if measured is None:
        return (
            f"efficiencies of {peaks_known.name} were not measured, only of"
            f" {', '.join(measured_cards())}; pyprof peaks --measure on it does"
        )
    return Board(name, peaks_known, measured)


def outcomes_of(*boards: Board) -> str:
    """Return the key of the outcomes of a change from one GPU to another."""
    if any(each.measured in POWER_LIMITED for each in boards):
        return LIMITED
    return STAND_IN if any(each.is_stand_in for each in boards) else OPTION


def _boards(context: RuleContext, rows: Mask) -> Mapping[int, Board] | str:
    """Return the capture's GPUs by their index in the column `gpu`, or why one cannot be used."""
    gpu = context.table.records.dictionary("gpu")
    boards = {}
    for index in np.unique(gpu.index[rows]).tolist():
        name = gpu.values[index] if index >= 0 else None
        here = board(name) if name else "the capture does not say which GPU it ran on"
        if isinstance(here, str):
            return here
        boards[index] = here
    return boards


def _assumption(*boards: Board) -> str:
    stand_ins = [
        f"{each.name} reaches the shares that pyprof peaks --measure found"
        if measured_here(each.measured)
        else f"{each.name} reaches the shares of {each.measured}"
        for each in boards
        if each.is_stand_in
    ]
    text = "the same kernels, or as good ones, run there, and their tensors fit its memory"
    return "; ".join([text, *dict.fromkeys(stand_ins)])


def _ratios(kernels: Kernels, boards: Mapping[int, Board], target: Board) -> NDArray[np.float64]:
    """Return each row's time there over its time here; NaN without a measured family or a cost."""
    costs, gpu = kernels.context.table.costs, kernels.context.table.records.dictionary("gpu").index
    flops = np.where(costs.flops >= 0, costs.flops, np.nan)
    ratio = np.full(len(kernels.ns), np.nan)
    for family, rows in _families(kernels.context).items():
        for index, here in boards.items():
            some = rows & (gpu == index)
            work = flops[some] if family in _PRODUCTS else 0.0
            ratio[some] = time_ratio(family, work, kernels.bytes[some], here, target)
    return ratio


def _families(context: RuleContext) -> dict[str, Mask]:
    """Find the rows of each calibrated family."""
    dtype = context.table.classified.numpy(lambda entry: entry.dtype or "", "")
    wide = ~np.isin(dtype, [*HALF])
    costs = context.table.costs
    batched = costs.params.matches(lambda each: isinstance(each.get("B"), int) and each["B"] > 1)
    products = context.role(Role.GEMM) & context.family("gemm") & (dtype == DTYPE) & ~costs.helper
    fused = context.role(Role.TRITON) & ~context.family("gemm", "conv", "attention")
    return {
        "gemm": products & ~batched,
        "bmm": products & batched,
        "softmax": context.role(Role.SOFTMAX) & wide,
        "norm": context.role(Role.NORM) & wide,
        "pointwise": (context.role(*_MEMORY) | fused) & wide,
    }


def time_ratio(
    family: str,
    flops: NDArray[np.float64] | float,
    moved: NDArray[np.float64] | float,
    here: Board,
    there: Board,
) -> NDArray[np.float64]:
    """Return time there over time here of a family's kernels in float32; NaN if not calibrated."""
    roofs, shares = [], []
    for each in (here, there):
        rate, bandwidth = each.peaks.flops(DTYPE, tensor_core=False), each.peaks.bandwidth
        rates = [known.value if known else np.nan for known in (rate, bandwidth)]
        roofs.append(np.maximum(np.divide(flops, rates[0]), np.divide(moved, rates[1])))
        shares.append(efficiency(each.measured, family, DTYPE) or np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(roofs[1], roofs[0]) * shares[0] / shares[1])
