"""What the rules look at: columns of the rows, and how to turn rows into evidence and gains."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.gpu.roles import Role, role
from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof.columns import COLUMNS
from pyprof.prof.families import family
from pyprof.report import api
from pyprof.report.advice.registry import Advice, Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from pyprof.prof.table import Table
    from pyprof.report.timeline import DeviceTime, Timeline
    from pyprof.schema import Capture

    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]


_EVIDENCE = ("op", "line", "kernel")


class Case:
    """A capture under the eyes of the rules. Masks are over all rows of the table."""

    def __init__(
        self,
        table: Table,
        timeline: Timeline | None = None,
        capture: Capture | None = None,
        rows: Mask | None = None,
    ) -> None:
        self.table, self.timeline, self.capture = table, timeline, capture
        self.chosen = np.ones(table.records.rows, bool) if rows is None else rows

    @cached_property
    def ns(self) -> NDArray[np.float64]:
        """Time on the GPU of each row."""
        return self.table.duration_ns.astype(float)

    @cached_property
    def devices(self) -> tuple[DeviceTime, ...]:
        """The GPUs' timelines; none where the records hold no times, or a capture no GPU."""
        devices = self.timeline.devices if self.timeline is not None else ()
        return tuple(device for device in devices if not device.on_cpu)

    @cached_property
    def span_ns(self) -> int:
        """The longest span of a GPU; without times, the summed time."""
        spans = [device.span_ns for device in self.devices]
        return max(spans) if spans else int(self.ns[self.chosen].sum())

    @cached_property
    def lane(self) -> Ints:
        """Number each row's GPU, as one process used it."""
        records = self.table.records
        device = records.numpy("device") + 1  # 0: not known
        keys = records.numpy("pid") * (int(device.max(initial=0)) + 1) + device
        return np.asarray(np.unique(keys, return_inverse=True)[1])

    @cached_property
    def launch_end(self) -> Ints:
        """End of the launching call; -1 where not known."""
        return api.launches(self.table.records)[1]

    # --- masks -----------------------------------------------------------------------------------

    def role(self, *roles: Role) -> Mask:
        """Find kernels of these roles."""
        name = self.table.records.coded("kLongName")
        found = np.array([*(role(text) in roles for text in name.values), False])
        return np.asarray(self.chosen & found[name.index])

    def family(self, *families: str) -> Mask:
        """Find rows that work for an op of these families."""
        costs = self.table.costs
        found = np.array([family(work) in families for work in costs.work], bool)
        return np.asarray(self.chosen & found[costs.work_of])

    def kind(self, kind: int) -> Mask:
        """Find rows of a kind of `schema.KINDS`."""
        return self.is_one("kind", schema.KINDS[kind])

    def is_one(self, column: str, *values: str) -> Mask:
        """Find rows with one of these values in a column of texts."""
        coded = self.table.records.coded(column)
        found = np.array([*(value in values for value in coded.values), False])
        return np.asarray(self.chosen & found[coded.index])

    @cached_property
    def why(self) -> pa.Array:
        """The column `why`, without what it says of rows above their peak."""
        said = COLUMNS["why"].values(self.table).dictionary_encode()
        reasons = pc.replace_substring_regex(said.dictionary, r"^above peak: [^;]*(; )?", "")
        return reasons.take(said.indices)

    def device_has(self, dtype: str) -> Mask:
        """Find rows on a GPU that is known to have Tensor Cores for a type."""
        peaks = self.table.devices
        found = [peak is not None and peak.flops(dtype, True) is not None  # noqa: FBT003 - on Tensor Cores
                 for peak in peaks.values]  # fmt: skip
        return np.asarray(np.array(found, bool)[peaks.index])

    # --- gains -----------------------------------------------------------------------------------

    def most(self, rows: Ints, ns: NDArray[np.float64]) -> int | None:
        """Sum what each row could win, NaN if not known, for the GPU that could win most.

        GPUs work side by side: what each wins shortens the step once. None: nothing is known.
        """
        known = np.isfinite(ns)
        if not known.any():
            return None
        won = np.bincount(self.lane[rows[known]], weights=np.maximum(ns[known], 0))
        return int(won.max())

    def faster(self, rows: Ints, dtype: str) -> NDArray[np.float64]:
        """Give what rows would win on Tensor Cores with inputs of `dtype`, ns; NaN if not known.

        At the share of the roofline that they reach now.
        """
        table, costs = self.table, self.table.costs
        peaks = table.devices
        rates = [(peak.flops(dtype, True), peak.bandwidth) if peak else (None, None)  # noqa: FBT003 - on Tensor Cores
                 for peak in peaks.values]  # fmt: skip
        tops = np.array([[rate.value if rate else np.nan for rate in pair] for pair in rates])
        top = tops[peaks.index[rows]]
        flops, moved = (
            np.where(cost[rows] >= 0, cost[rows], np.nan) for cost in (costs.flops, costs.bytes)
        )
        least = np.maximum(flops / top[:, 0], moved / top[:, 1]) * NS_PER_S
        share = np.minimum(table.roofline.share[rows], 1)
        return np.asarray(self.ns[rows] - least / share)

    # --- evidence --------------------------------------------------------------------------------

    @cached_property
    def _texts(self) -> dict[str, pa.Array]:
        return {name: COLUMNS[name].values(self.table).dictionary_encode() for name in _EVIDENCE}

    def advice(
        self,
        name: str,
        title: str,
        action: str,
        rows: Ints,
        gain_ns: int | None,
        weight: NDArray[np.float64] | None = None,
        detail: Iterable[str] | None = None,
    ) -> Advice | None:
        """Make an advice that rests on rows; None where there are none.

        `weight` is the time that each row stands for, if not its own.
        """
        if not len(rows):
            return None
        weights = self.ns[rows] if weight is None else weight
        return Advice(name, title, action, gain_ns, self.evidence(rows, weights, detail), rows)

    def evidence(
        self, rows: Ints, weight: NDArray[np.float64], detail: Iterable[str] | None = None
    ) -> tuple[Evidence, ...]:
        """Group rows by op and line, the most time first."""
        index = pa.array(rows)
        op, line, kernel = (self._texts[name].take(index).cast(pa.string()) for name in _EVIDENCE)
        texts = [*detail] if detail is not None else [""] * len(rows)
        what = pc.coalesce(op, kernel)
        data = pa.table({"what": what, "line": line, "detail": texts, "ns": weight})
        grouped = data.group_by(["what", "line", "detail"]).aggregate(
            [("ns", "sum"), ("ns", "count")]
        )
        found = [
            Evidence(row["what"], row["line"], row["ns_count"], int(row["ns_sum"]), row["detail"])
            for row in grouped.to_pylist()
        ]
        return tuple(sorted(found, key=lambda e: (-e.total_ns, e.what, e.line or "", e.detail)))
