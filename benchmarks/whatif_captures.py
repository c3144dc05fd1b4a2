"""Outcomes of `pyprof whatif` on pairs of captures, before and after a change of one program."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from whatif_outcome import Outcome

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.attention_calls import ROOF_SHARE, attention_calls
from pyprof.analysis.whatif import fusion, other_gpu, precision, predictions
from pyprof.analysis.whatif.kernels import Prediction, unchanged
from pyprof.gpu.role_rules import Role
from pyprof.gpu.roofline import NS_PER_S
from pyprof.inputs import source
from pyprof.prof.table import Table


class Pair(NamedTuple):
    """Captures before and after changes, of the same work."""

    before: str
    after: str
    changes: tuple[str, ...]
    """All made together; `--fuse` counts if most chains are in the part that was fused."""
    limit: float
    """Maximum error of the whole time, as last recorded."""


_BF16, _ATTENTION, _POINTWISE = "--dtype bf16", "--fuse attention", "--fuse pointwise"
_EAGER_80GB = "../captures/kineto-a100-sam-eager/trace.json.gz"
PAIRS = (
    Pair("sam/asdf_False_410e.json.gz", "sam/asdf_True_143a.json.gz", (_BF16, _ATTENTION), 0.07),
    Pair(_EAGER_80GB, "sam/asdf_True_4488.json.gz", (_BF16, _ATTENTION), 0.05),
    Pair("sam/asdf_False_9ab0.json.gz", "sam/asdf_True_3b76.json.gz", (_BF16, _POINTWISE), 0.04),
    Pair("sam/asdf_True_4488.json.gz", "sam/asdf_True_10b6.json.gz", (_POINTWISE,), 0.05),
    Pair("sam/asdf_False_410e.json.gz", _EAGER_80GB, ("--gpu A100 SXM4 80GB",), 0.11),
    Pair(_EAGER_80GB, "sam/asdf_False_410e.json.gz", ("--gpu A100 SXM4 40GB",), 0.14),
)
_PROGRAM = "Segment Anything"
_OTHER_ATTENTION = ("../captures/kineto-h100-vit-inference/trace.json.gz", "ViT")


@lru_cache(maxsize=8)
def _table(path: Path) -> Table:
    return source.load(str(path), host=False).table


def pairs(folder: Path) -> Iterator[tuple[Outcome, float]]:
    """Predict each pair, with its limit; raises LookupError where the change is refused."""
    for pair in PAIRS:
        before, after = (_table(folder / name) for name in (pair.before, pair.after))
        predicted, refused = predictions(before, pair.changes)
        if not predicted or predicted[-1].change != " ".join(pair.changes):
            raise LookupError(f"{pair.before}: {refused}")
        given = predicted[-1]
        same = np.ones(len(given.kernels.ns), bool)
        same[given.rows] = False
        option = other_gpu.STAND_IN if other_gpu.OPTION in given.change else pair.changes[0]
        yield (
            Outcome(
                option,
                f"{given.change}: {Path(pair.before).stem[:16]} -> {Path(pair.after).stem[:16]}",
                _PROGRAM,
                float(given.kernels.ns.sum()),
                float(after.duration_ns.sum()),
                float(given.kernels.ns[same].sum()),
            ),
            pair.limit,
        )


def products(folder: Path) -> Iterator[Outcome]:
    """Compare float32 products, but those of attention, with the same ones on Tensor Cores.

    No pair has TF32; bfloat16 follows the same formula, with half the bytes.
    """
    for pair in PAIRS[:2]:
        before, after = (RuleContext(_table(folder / name)) for name in (pair.before, pair.after))
        given = precision.predict_half(unchanged(before), "bf16")
        if isinstance(given, Prediction):
            wanted = before.role(Role.GEMM)
            for call in attention_calls(before):
                wanted[[*call.rows]] = False
            expected = float(given.kernels.ns[wanted].sum())
            real = float(after.ns[after.role(Role.GEMM)].sum())
            yield Outcome(precision.TF32, "products in bfloat16", _PROGRAM, expected, real)


def fused_attention(folder: Path) -> Iterator[Outcome]:
    """Compare calls of each size that occurs so often in one way only, in bfloat16."""
    for pair in PAIRS[:2]:
        before, after = (RuleContext(_table(folder / name)) for name in (pair.before, pair.after))
        calls = attention_calls(before)
        given = fusion.predict_attention(replace(unchanged(before), dtype="bfloat16"))
        rows_of, real = defaultdict(list), defaultdict(list)
        for call in calls:
            if isinstance(given, Prediction) and call.rows[0] in given.rows:
                rows_of[call.batch, call.queries, call.keys, call.width].append(call.rows)
        for row in np.flatnonzero(after.role(Role.ATTENTION)).tolist():
            real[after.table.costs.work.index[row]].append(after.ns[row])
        often = Counter(map(len, real.values()))
        by_count = {len(times): sum(times) for times in real.values() if often[len(times)] == 1}
        for rows in rows_of.values():
            if len(rows) in by_count and isinstance(given, Prediction):
                expected = float(given.kernels.ns[np.concatenate(rows)].sum())
                what = f"{len(rows)} calls of one size"
                yield Outcome(fusion.ATTENTION, what, _PROGRAM, expected, by_count[len(rows)])
    yield from _attention_of(folder)


def _attention_of(folder: Path) -> Iterator[Outcome]:
    """Compare fused kernels that a capture has with the time by their roof."""
    name, program = _OTHER_ATTENTION
    case = RuleContext(_table(folder / name))
    rows = np.flatnonzero(case.role(Role.ATTENTION))
    peaks = case.table.devices.at(int(rows[0]))
    rate = peaks.flops("bfloat16", tensor_core=True) if peaks else None
    if peaks is not None and rate is not None and peaks.bandwidth is not None:
        costs = case.table.costs
        roof = np.maximum(costs.flops[rows] / rate.value, costs.bytes[rows] / peaks.bandwidth.value)
        expected = float(roof.sum()) * NS_PER_S / ROOF_SHARE
        what = f"{len(rows)} fused kernels"
        yield Outcome(fusion.ATTENTION, what, program, expected, float(case.ns[rows].sum()))
