"""How many scores an attention computes: its lengths, and the band of keys that a query sees.

Scores are counted as an area: a causal square is half of it, S^2 / 2 and not S (S + 1) / 2, as Dao
2023 (FlashAttention-2, section 4.1) counts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.marker import Opaque
from pyprof.ops.signature import MISSING, Unknown
from pyprof.ops.work import size

if TYPE_CHECKING:
    from pyprof.marker import Tensor
    from pyprof.ops.work import Args

_TOP_LEFT, _BOTTOM_RIGHT = 1, 2  # ATen's custom_mask_type: which corner the diagonal starts from


@dataclass(frozen=True, slots=True)
class Heads:
    """The lengths of one attention: batch, query heads, both sequences, both head sizes."""

    batch: int
    heads: int
    queries: int
    keys: int
    width: int
    value_width: int

    def params(self, q: Tensor, band: Band) -> dict[str, object]:
        """Give what the report shows."""
        found: dict[str, object] = {"B": self.batch, "H": self.heads, "Sq": self.queries}
        found |= {"Sk": self.keys, "D": self.width, "Dv": self.value_width}
        found["causal"] = int(band.right == 0)
        if band.left is not None or band.right:
            found["window"] = (band.left, band.right)
        return found | ({"type": q.dtype} if q.dtype else {})


@dataclass(frozen=True, slots=True)
class Band:
    """The keys that a query sees: from `left` before its own place to `right` behind it.

    None: all of that side. `from_end`: the last query's place is the last key, as in flash
    kernels; else the first query's is the first key, as `is_causal` says.
    """

    left: int | None = None
    right: int | None = None
    from_end: bool = False

    def seen(self, queries: int, keys: int) -> int:
        """Give twice the number of scores of one head."""
        shift = keys - queries if self.from_end else 0
        count = 2 * queries * keys
        if self.right is not None:
            count -= _beyond(queries, keys, shift + self.right)
        if self.left is not None:
            count -= _beyond(keys, queries, self.left - shift)
        return max(0, count)


def _beyond(rows: int, columns: int, diagonal: int) -> int:
    """Give twice the area of a rectangle that lies right of column = row + diagonal.

    A triangle with the rectangle's corner, less what of it sticks out on two sides.
    """
    corners = (columns - diagonal, columns - diagonal - rows, -diagonal, -diagonal - rows)
    whole, below, left, both = (max(0, leg) ** 2 for leg in corners)
    return whole - below - left + both


def heads(q: Tensor, k: Tensor, v: Tensor, *, heads_at: int) -> Heads:
    """Read [B, H, S, D] (heads_at -3) or [B, S, H, D] (heads_at -2); fewer key heads share."""
    sequence_at = -5 - heads_at
    count, key_heads = size(q, heads_at), size(k, heads_at)
    if key_heads == 0 or count % key_heads or size(q, -1) != size(k, -1):
        raise Unknown("arguments do not fit the op")
    batch = q.numel // max(1, count * size(q, sequence_at) * size(q, -1))
    return Heads(batch, count, size(q, sequence_at), size(k, sequence_at), size(q, -1), size(v, -1))


def packed(a: Args, q: Tensor, k: Tensor, v: Tensor, starts: Tensor) -> Heads:
    """Read sequences laid end to end: their lengths are told only where all are the longest."""
    count = size(starts, 0) - 1
    longest, longest_key = a.integer("max_q", 0), a.integer("max_k", 0)
    total, total_key = (t.numel // max(1, size(t, -1) * size(t, -2)) for t in (q, k))
    if count * longest != total or count * longest_key != total_key:
        raise Unknown("lengths of packed sequences depend on the data")
    return Heads(count, size(q, -2), longest, longest_key, size(q, -1), size(v, -1))


def band(a: Args, *, from_end: bool) -> Band:
    """Read the mask from `is_causal`, ATen's `custom_mask_type` and the window. Raises Unknown."""
    mask = a.values.get("custom_mask_type", 0)
    if isinstance(mask, Opaque) and mask is not MISSING:
        raise Unknown("custom_mask_type not recorded")
    causal = a.flag("is_causal", default=False) or a.flag("causal", default=False)
    if mask in (_TOP_LEFT, _BOTTOM_RIGHT):
        causal, from_end = True, mask == _BOTTOM_RIGHT
    left, right = _window(a)
    return Band(left, 0 if causal else right, from_end)


def _window(a: Args) -> tuple[int | None, int | None]:
    """Give how far a query sees to both sides: flash kernels write -1 for all of a side.

    None where it is not recorded: a trace that holds `is_causal` leaves out only what is None.
    """
    window = a.values.get("window_size")
    if isinstance(window, int):  # the efficient kernel's: so many keys, the query's own among them
        window = (window - 1,)
    if not isinstance(window, tuple):
        window = (a.values.get("window_size_left"), a.values.get("window_size_right"))
    sides = [side if isinstance(side, int) and side >= 0 else None for side in window]
    left, right = (*sides, None, None)[:2]
    return left, right
