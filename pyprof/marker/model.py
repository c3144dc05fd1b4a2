"""Values that markers state: kinds of text, calls of ops, tensors, sequence numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


STEP_OF = "Optimizer.step#"
"""Prefix of PyTorch's range around the step of an optimizer."""
CLOSURE = "Optimizer.closure#"
"""Prefix of the range around an optimizer's closure: forward and backward, not the optimizer."""


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
    """A range of the user, or of a framework around the user's program: a layer."""
    STEP = 8
    """A user's range around one step of a loop."""


FRAMES, FUSED_OPS = "frames", "fused_ops"
"""Arguments of a generated kernel's marker: the source lines of its ops, and their names."""


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
    """Number of stored elements of a sparse tensor; None if dense or not recorded."""
    nbytes: int | None = None
    """Bytes of these elements and their indices, or of the tensors inside a wrapper, which may be
    quantized; None likewise."""

    @property
    def sparse(self) -> bool:
        """Whether it only stores some of its elements, by its layout.

        torch.profiler's traces have no layouts, but write a sparse tensor without strides.
        """
        return self.subclass.startswith("sparse_") or (bool(self.shape) and self.stride == ())

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Opaque:
    """An argument whose type is all that is known; "" for none.

    emit_nvtx writes `[]` for a number, None, and a tensor without dimensions alike.
    """

    type: str = ""

    @property
    def may_be_unsized(self) -> bool:
        """Whether it can be a tensor without dimensions: not where types were recorded."""
        return self.type != UNTYPED


UNTYPED = "untyped"
"""Stands for the type of an argument without one in a capture that records those of all tensors:
the argument is None, or a tensor whose shape is unknown (a nested one)."""


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
    """False if the text was truncated and arguments may be missing."""
    collective: Mapping[str, str | int] = field(default_factory=dict)
    """Other facts about a collective: keys of `schema.COLLECTIVE`."""

    def __hash__(self) -> int:
        items = (*self.kwargs.items(), *self.collective.items())
        return hash((self.mod, self.op, self.args, items))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors among the arguments, including those in lists."""
        return tuple(_tensors((*self.args, *self.kwargs.values())))


def _tensors(values: Iterable[Value]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from _tensors(value)
        elif isinstance(value, Summary):
            yield from _tensors(value.items)


@dataclass(frozen=True, slots=True)
class Seq:
    """One of PyTorch's own ranges, parsed."""

    name: str
    """`aten::addmm`, `AddmmBackward0`, `autograd::engine::evaluate_function: AddmmBackward0`."""
    seq: int | None = None
    """Sequence number: a forward op and its backward node share it, per forward thread."""
    op_id: int | None = None
    call: Call | None = None
    """The op with its shapes, if recorded; None for the engine's own ranges."""


DDP = ("torch.nn.parallel", "DistributedDataParallel")
"""An empty range with this op states the process group in which PyTorch reduces gradients."""

STOPPED = ", stopped = True"
"""Suffix of the text of an op that began and never ran."""

EVALUATE = "autograd::engine::evaluate_function: "
"""The engine's prefix to the name of the node that it evaluates."""

DERIVED = "GeneratedBackwardFor_"
"""What torch.library calls an operator inside itself if its derivative is written in Python."""


NODE = r"[A-Z]\w*Backward\d+(?:_copy)?"
"""PyTorch's names of generated nodes: only these are known by their name alone."""
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
