"""Worked examples of formulas: a call, its cost calculated by hand, and tensors to write it with.

`bf16(4, 6)` is a bfloat16 tensor of that shape, `f8(4, 6)` one of float8_e4m3fn.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from pyprof.marker import Call, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.marker import Value

NN = "torch.nn.functional"
"""The namespace of many examples."""


@dataclass(frozen=True, slots=True)
class Example:
    """A call with these arguments, and its cost; a test compares that with the formula's.

    `op` is by default the first name that the formula is registered for, `mod` the namespace of
    that name, or `torch` if it has none.
    """

    args: tuple[Value, ...] = ()
    _: KW_ONLY
    flops: int | None = None
    bytes: int | None = None
    op: str = ""
    mod: str | None = None
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    collective: Mapping[str, str | int] = field(default_factory=dict)

    def call(self, name: str) -> Call:
        """Return the example's call of the op of this name."""
        namespace, colons, plain = name.rpartition("::")
        if not colons:
            namespace, _, plain = name.rpartition(".")
        mod = (namespace or "torch") if self.mod is None else self.mod
        return Call(mod, self.op or plain, self.args, self.kwargs, collective=self.collective)


def _typed(dtype: str) -> Callable[..., Tensor]:
    return lambda *shape: Tensor(shape, dtype)


f64, f32, f16, bf16 = _typed("float64"), _typed("float32"), _typed("float16"), _typed("bfloat16")
f8, c64, b8 = _typed("float8_e4m3fn"), _typed("complex64"), _typed("bool")
i64, i32, i16, i8 = _typed("int64"), _typed("int32"), _typed("int16"), _typed("int8")
u32, u8 = _typed("uint32"), _typed("uint8")
