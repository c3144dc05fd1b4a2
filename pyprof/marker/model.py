"""What markers say, as plain values: kinds of text, calls of ops, tensors, sequence numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


STEP_OF = "Optimizer.step#"
"""Begins the text of PyTorch's range around the step of an optimizer."""
CLOSURE = "Optimizer.closure#"
"""The text around what an optimizer's step calls back: forward and backward, not the optimizer."""


class Kind(IntEnum):
    """The kind of a text."""

    CONTEXT = 0
    """A range of another library: never an op, and no part of the user's program."""
    OP = 1
    TRACE = 2
    MODULE = 3
    LAYER = 4
    SEQ = 5
    """One of PyTorch's own ranges."""
    OPTIMIZER = 6
    """PyTorch's range around an optimizer's step or zero_grad, or ours around its closure."""
    USER = 7
    """A range of the user's, or of a framework around the user's program: a layer."""
    STEP = 8
    """Such a range around one step of a loop."""


FRAMES, FUSED_OPS = "frames", "fused_ops"
"""Arguments of a generated kernel's marker: where its ops are from, and which they are."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument. `dtype` is torch's name without `torch.`; None if unknown."""

    shape: tuple[int, ...]
    dtype: str | None = None
    stride: tuple[int, ...] | None = None
    layout: str = ""
    """`channels_last`, `transposed`, `strided`, ...; empty for contiguous or not known."""
    subclass: str = ""
    """`DTensor`, `NestedTensor`, `sparse_csr`, ...; empty for a plain tensor."""
    nnz: int | None = None
    """Numbers that a sparse tensor stores; None for a dense one, and where not recorded."""
    nbytes: int | None = None
    """Bytes of these and of their indices, likewise."""

    @property
    def sparse(self) -> bool:
        """Whether it only stores some of its elements: its layout says so.

        torch.profiler's traces have no layouts, but write a sparse tensor without strides.
        """
        return self.subclass.startswith("sparse_") or (bool(self.shape) and self.stride == ())

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Opaque:
    """An argument of which at most the type is known; "" for none.

    emit_nvtx writes `[]` for a number, None, and a tensor without dimensions alike.
    """

    type: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """A list of tensors too long to be written out."""

    length: int
    numel: int | None = None
    dtype: str | None = None
    items: tuple[Value, ...] = ()
    """The first few."""


Value: TypeAlias = "Tensor | Opaque | Summary | int | float | bool | str | tuple[Value, ...] | None"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an op, with its arguments as far as they are known."""

    mod: str
    """`torch`, `Tensor`, `torch.nn.functional`, a user's class; `aten` for PyTorch's own."""
    op: str
    args: tuple[Value, ...] = ()
    kwargs: Mapping[str, Value] = field(default_factory=dict)
    whole: bool = True
    """False where the text was cut and arguments may be missing."""
    collective: Mapping[str, str | int] = field(default_factory=dict)
    """Of a collective, what else is said: keys of `schema.COLLECTIVE`."""

    def __hash__(self) -> int:
        items = (*self.kwargs.items(), *self.collective.items())
        return hash((self.mod, self.op, self.args, items))


@dataclass(frozen=True, slots=True)
class Seq:
    """One of PyTorch's own ranges, parsed."""

    name: str
    """`aten::addmm`, `AddmmBackward0`, `autograd::engine::evaluate_function: AddmmBackward0`."""
    seq: int | None = None
    """Sequence number: a forward op and its backward node share it, per forward thread."""
    op_id: int | None = None
    call: Call | None = None
    """The op with its shapes, where they were recorded; None for the engine's own ranges."""
    stopped: bool = False
    """It began and never ran."""


DDP = ("torch.nn.parallel", "DistributedDataParallel")
"""What tells, around nothing, in which process group gradients are reduced by PyTorch itself."""

STOPPED = ", stopped = True"
"""What stands behind the text of an op that began and never ran."""

EVALUATE = "autograd::engine::evaluate_function: "
"""What the engine puts before the name of the node that it evaluates."""


def node_name(name: str) -> str:
    """Return the name of the op or autograd node, without the engine's prefix."""
    return name.removeprefix(EVALUATE)


NODE = r"[A-Z]\w*Backward\d+(?:_copy)?"
"""How PyTorch names the nodes that it generates: only these are known by the name alone."""
_IS_NODE = re.compile(NODE)


def is_node_name(name: str) -> bool:
    """Whether the name has the form of autograd's generated nodes."""
    return _IS_NODE.fullmatch(name) is not None


_BACKWARD = re.compile(
    r"Backwards?\d*(?:_copy)?$|_backward$|AccumulateGrad$|^autograd::engine::evaluate_function: "
    r"|^torch::autograd::CppNode<"  # a C++ extension's own function
    r"|^torch(?:\.distributed\.ddp\.|::distributed::)reducer::"  # DDP's work on gradients
)


def is_backward(name: str) -> bool:
    """Whether a range of this name is a node of a backward pass."""
    return _BACKWARD.search(name) is not None
