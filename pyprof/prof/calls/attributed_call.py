"""The op call that kernels work for, with its family and its cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyprof import ops
from pyprof.gpu.kernel_dtypes import HALF
from pyprof.marker import Tensor
from pyprof.ops import registry
from pyprof.ops.registry import BPROP
from pyprof.ops.work import EMPTY_CONTEXT, CallContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.marker import Call, Value
    from pyprof.ops import Cost
    from pyprof.prof.kernels.name_hints import NameHints


OWN = -1
"""The position for "no enclosing call": each kernel is a call of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributedCall:
    """The op call that kernels work for, and how to cost it."""

    call: Call | None
    """None if no text names an op, as `reason` then states."""
    direction: str
    dtype: str | None = None
    """Used where the call's text lacks dtypes."""
    position: int = OWN
    """Which of a row's `callIds` is the call's; OWN if none."""
    reason: str = ""
    output: tuple[int, ...] | None = None
    """Shape of the call's output, if the texts have it."""
    call_context: CallContext = EMPTY_CONTEXT

    @property
    def lacks_dtype(self) -> bool:
        """Whether no tensor of the call has a known type."""
        if self.call is None or self.dtype is not None:
            return False
        return not any(tensor.dtype for tensor in self.call.tensors)

    @property
    def may_be_cast(self) -> bool:
        """Whether autocast converts operands of such an op inside, unseen by its marker."""
        return family(self) in _AUTOCAST

    @property
    def gradient(self) -> bool:
        """Whether it is part of a backward pass: of a forward call, or an op of its own."""
        return self.direction == BPROP or (self.call is not None and "backward" in self.call.op)

    @property
    def has_shapes(self) -> bool:
        """Whether the shape of some tensor of the call is known."""
        return self.call is not None and bool(self.call.tensors)

    def cost(self, gemm_kernels: int | None = None, hints: NameHints | None = None) -> Cost:
        """Cost the call; a backward pass by the number of its kernels that do arithmetic.

        `hints` are facts from its kernels' names that no text has.
        """
        call = self.call
        if call is None:
            return ops.Cost(None, None, {}, self.reason)
        dtype, call_context = self.dtype, self.call_context
        if hints is not None:
            if hints.dtype and hints.dtype in _AUTOCAST.get(family(self), ()):
                call, dtype = _cast(call, hints.dtype), hints.dtype
            dtype = dtype or hints.dtype
            if hints.training is not None:
                call = ops.with_argument(call, "training", hints.training)
            if hints.sparse and not any(tensor.sparse for tensor in call.tensors):
                return ops.Cost(None, None, {}, ops.NOT_STORED)
            call_context = replace(call_context, weights=hints.weights or "")
        kernels = gemm_kernels if self.gradient else None
        return ops.cost(
            call,
            self.direction,
            gemm_kernels=kernels,
            dtype=dtype,
            output=self.output,
            context=call_context,
        )


_FLOAT32 = frozenset({"float32"})
_AUTOCAST: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(("gemm", "conv", "attention"), HALF),
        **dict.fromkeys(("norm", "softmax", "loss"), _FLOAT32),
    }
)
"""By family, the types to which torch.autocast converts the operands of its ops.

Source: PyTorch's "Autocast Op Reference".
"""


def _cast(call: Call, dtype: str) -> Call:
    """Return the call with its tensors converted as autocast does, which leaves float64 alone."""

    def converted(value: Value) -> Value:
        if isinstance(value, Tensor) and value.dtype in HALF | _FLOAT32:
            return replace(value, dtype=dtype)
        return value

    kwargs = {name: converted(value) for name, value in call.kwargs.items()}
    return replace(call, args=tuple(map(converted, call.args)), kwargs=kwargs)


PRODUCTS = frozenset({"gemm", "conv"})
"""Families whose arithmetic is one matrix product or convolution."""

MOVES = frozenset({"copy", "fill", "index", "embedding", "resample"})
"""Families whose kernels may move elements regardless of their type."""


def family(work: AttributedCall) -> str:
    """Name the family of the op that kernels work for; "" where no op is known."""
    model = registry.find(work.call, work.direction) if work.call else None
    return model.family if model is not None else ""
