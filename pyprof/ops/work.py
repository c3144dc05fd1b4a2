"""The arguments of a formula, by name, and its result: operations and the tensors moved."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyprof.marker import Opaque, Summary, Tensor, Value
from pyprof.ops import dtypes
from pyprof.ops.model_config import REMEDY
from pyprof.ops.signature import MISSING, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyprof.marker.serving_steps import Batch
    from pyprof.ops.model_config import ModelConfig


@dataclass(frozen=True, slots=True)
class Work:
    """Arithmetic operations, and the tensors that must cross the memory bus once each.

    A tensor that is read and written (by an in-place op) is in both.
    """

    flops: int | None
    reads: tuple[Tensor, ...] = ()
    writes: tuple[Tensor, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)
    """What the numbers follow from; None is not shown."""
    extra_bytes: int = 0
    """Traffic besides the call's tensors."""
    why: str = ""
    """Why the bytes are unknown; "" if the tensors tell them."""
    no_flops: str = ""
    """Why `flops` is None."""
    added: tuple[Tensor, ...] = ()
    """A product's bias and the tensor that it is added to, or is the sum of, in one kernel."""
    via: str = ""
    """Sources of the numbers besides the call's arguments."""
    stages: tuple[int, ...] = ()
    """Shares of its arithmetic, in the kernels' order, if as many kernels do it: 2 to 1."""

    def __add__(self, other: Work) -> Work:
        """Return the work of doing both, one after the other."""
        unknown = self.flops is None or other.flops is None
        return Work(
            None if unknown else (self.flops or 0) + (other.flops or 0),
            self.reads + other.reads,
            self.writes + other.writes,
            {**other.params, **self.params},
            self.extra_bytes + other.extra_bytes,
            self.why or other.why,
            self.no_flops or other.no_flops,
            self.added + other.added,
            self.via or other.via,
        )

    def moved_bytes(self) -> int:
        """Return the bytes moved. Raises Unknown if they, or a dtype, are unknown."""
        if self.why:
            raise Unknown(self.why)
        return self.extra_bytes + sum(map(tensor_bytes, self.reads + self.writes))


NOT_STORED = "sparse: how many elements are stored is not recorded"
SIZE_IN_DATA = "result's size depends on the data"


def twice(forward: Work) -> Work:
    """Return the backward work of products: each gradient costs as much as the forward.

    What was read and the incoming gradients are read, a gradient is written for all that was read.
    """
    flops = None if forward.flops is None else 2 * forward.flops
    reads = (*forward.writes, *forward.reads)
    return Work(flops, reads, tuple(map(like, forward.reads)), forward.params)


def twice_of(forward: Callable[[Args], Work]) -> Callable[[Args], Work]:
    """Return the formula of a backward pass with `twice` the forward formula's work."""

    def formula(a: Args) -> Work:
        """Each operand's gradient costs as much as the forward."""
        return twice(forward(a))

    formula.__module__ = forward.__module__
    return formula


def stored(tensor: Tensor) -> int:
    """Count the elements that are stored: a dimension of stride 0 repeats one."""
    if tensor.stride is None or len(tensor.stride) != len(tensor.shape):
        return tensor.numel
    return math.prod(
        size if step or not size else 1
        for size, step in zip(tensor.shape, tensor.stride, strict=True)
    )


def tensor_bytes(tensor: Tensor) -> int:
    """Return the bytes that a tensor occupies. Raises Unknown if its dtype is unknown.

    Those of a sparse one are recorded, or not known; so are those of a wrapper of others.
    """
    if tensor.nbytes is not None:
        return tensor.nbytes
    if tensor.sparse:
        raise Unknown(NOT_STORED)
    count = stored(tensor)
    if not count:
        return 0
    size = dtypes.item_size(tensor.dtype)
    if size is None:
        raise Unknown(f"unknown dtype {tensor.dtype}" if tensor.dtype else "unknown dtype")
    return count * size


def fresh(shape: Iterable[int], dtype: str | None) -> Tensor:
    """Return a tensor that the op makes. Raises Unknown for a shape with a negative size."""
    sizes = tuple(shape)
    require(all(size >= 0 for size in sizes))
    return Tensor(sizes, dtype)


def size(tensor: Tensor, at: int) -> int:
    """Return a dimension's size. Raises Unknown if there is no such dimension."""
    require(-len(tensor.shape) <= at < len(tensor.shape))
    return tensor.shape[at]


def row_count(tensor: Tensor) -> int:
    """Count the rows of all dimensions but the last. Raises Unknown if there is no dimension."""
    return tensor.numel // max(1, size(tensor, -1))


def require(condition: object) -> None:
    """Raise Unknown unless the arguments fit the op."""
    if not condition:
        raise Unknown("arguments do not fit the op")


def has_rank(tensor: Tensor, rank: int, *, or_more: bool = False) -> bool:
    """Whether a tensor has exactly this many dimensions, or at least as many."""
    return len(tensor.shape) == rank or (or_more and len(tensor.shape) > rank)


def like(tensor: Tensor, shape: Iterable[int] | None = None) -> Tensor:
    """Return a new contiguous tensor of the same dtype, of the same shape unless one is given."""
    return Tensor(tensor.shape if shape is None else tuple(shape), tensor.dtype)


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which these broadcast. Raises Unknown if they do not."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        length = max(len(result), len(shape))
        left = (1,) * (length - len(result)) + result
        right = (1,) * (length - len(shape)) + shape
        if any(a not in (1, b) and b != 1 for a, b in zip(left, right, strict=True)):
            raise Unknown("shapes do not broadcast")
        result = tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))
    return result


@dataclass(frozen=True, slots=True)
class CallContext:
    """What is known of a call besides its arguments: model, batch, how weights are stored."""

    model: ModelConfig | None = None
    """The configuration that the user gave."""
    batch: Batch | None = None
    """The requests of the serving step that it is part of."""
    weights: str = ""
    """How weights are stored, according to its kernels' names: `mxfp4`."""
    layer: int | None = None
    """Index of its layer among the model's layers with attention; None if unknown."""
    ranks: int = 1
    """Ranks that share a layer of the model: its heads over those recorded."""


EMPTY_CONTEXT = CallContext()


@dataclass(frozen=True, slots=True)
class Args:
    """The arguments of a call, bound to a signature's names."""

    op: str
    """The op's plain name: `add` for `add_`, `__iadd__`, `aten::add`."""
    in_place: bool
    values: Mapping[str, Value]
    mod: str = ""
    """Where the op was called: `torch`, `aten`, a class."""
    gemm_kernels: int | None = None
    """How many arithmetic kernels the backward launched; None if unknown."""
    output: tuple[int, ...] | None = None
    """The shape of the first output, if the caller knows it from elsewhere."""
    context: CallContext = EMPTY_CONTEXT

    def model(self, missing: str) -> ModelConfig:
        """Return the configuration of the model. Raises Unknown with what is `missing`."""
        if self.context.model is None:
            raise Unknown(f"{missing} not recorded: {REMEDY}")
        return self.context.model

    def batch(self) -> Batch:
        """Return the requests of the serving step. Raises Unknown if no range states them."""
        if self.context.batch is None:
            raise Unknown("lengths of the requests are in no range around the step")
        return self.context.batch

    def replaced(self, **values: Value) -> Args:
        """Return the same arguments with some of them replaced."""
        return replace(self, values={**self.values, **values})

    def tensor(self, name: str) -> Tensor:
        """Return a tensor argument. Raises Unknown if it is none."""
        value = self.values.get(name, MISSING)
        if not isinstance(value, Tensor):
            raise Unknown(f"argument {name} is not a tensor of known shape")
        return value

    def optional(self, name: str) -> Tensor | None:
        """Return a tensor argument; None if it was not given."""
        value = self.values.get(name, MISSING)
        return value if isinstance(value, Tensor) else None

    def present(self, *names: str) -> tuple[Tensor, ...]:
        """Return those of the tensor arguments that were given."""
        return tuple(tensor for name in names if (tensor := self.optional(name)) is not None)

    def gradient(self, result: Tensor) -> Tensor:
        """Return the incoming gradient: `grad_output` if the op takes it, else like the result."""
        given = self.optional("grad_output")
        return like(result) if given is None else given

    def tensors(self, name: str) -> tuple[Tensor, ...]:
        """Return a list of tensors. Raises Unknown unless it was recorded in full."""
        value = self.values.get(name, MISSING)
        if isinstance(value, Summary):
            if value.numel is None:
                raise Unknown("tensor list too long to be recorded")
            return (Tensor((value.numel,), value.dtype),)  # one flat tensor for all of them
        if not isinstance(value, tuple) or not all(isinstance(item, Tensor) for item in value):
            raise Unknown(f"tensors of {name} not recorded")
        return tuple(item for item in value if isinstance(item, Tensor))

    def listed(self, name: str) -> tuple[Value, ...]:
        """Return every value of a list; () if there is none."""
        value = self.values.get(name, ())
        return value if isinstance(value, tuple) else ()

    def given(self, name: str) -> bool:
        """Whether the caller passed something other than None."""
        return self.values.get(name, MISSING) not in (MISSING, None)

    def known(self, name: str) -> bool:
        """Whether an argument's value is not hidden; one that was not given is known."""
        value = self.values.get(name, MISSING)
        return value is MISSING or not isinstance(value, Opaque)

    def value(self, name: str, default: Value = None) -> Value:
        """Return a plain argument; the default if it was not given. Raises Unknown if opaque."""
        value = self.values.get(name, MISSING)
        if value is MISSING or value is None:
            return default
        if isinstance(value, Opaque):
            raise Unknown(f"{name} not recorded")
        return value

    def integer(self, name: str, default: int) -> int:
        """Return an integer argument. Raises Unknown if its value is unknown."""
        value = self.value(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unknown(f"{name} is not an integer")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a truth value. Raises Unknown if its value is unknown."""
        return bool(self.value(name, default))

    def integers(self, name: str, count: int, default: int) -> tuple[int, ...]:
        """Return `count` integers; a single number is repeated. Raises Unknown if unknown."""
        numbers = _integers(self.value(name, default))
        if numbers is None or len(numbers) not in (1, count):
            raise Unknown(f"{name} is not {count} integers")
        return numbers * count if len(numbers) == 1 else numbers

    def sizes(self, name: str) -> tuple[int, ...]:
        """Return a shape: a list, or one number. Raises Unknown unless it is known in full."""
        sizes = _integers(self.value(name)) if self.known(name) else None
        if sizes is None:
            raise Unknown(f"{name} not recorded")
        return sizes

    def dtype(self, name: str = "dtype") -> str | None:
        """Return a dtype argument's name; None if none was given. Raises Unknown if opaque."""
        return dtypes.canonical(self.value(name))

    def axis(self, rank: int, default: int = -1) -> int:
        """Return the one dimension that `dim` names, from 0. Raises Unknown if invalid."""
        at = self.integer("dim", default)
        if not -rank <= at < rank:
            raise Unknown("dim is not a dimension")
        return at % rank

    def dims(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the dimensions named by an int or a tuple; all by default. Raises Unknown."""
        value = self.value(name)
        if value is None or value == ():
            return tuple(range(rank))
        numbers = _integers(value)
        if numbers is None or not all(-max(rank, 1) <= dim < max(rank, 1) for dim in numbers):
            raise Unknown(f"{name} is not a dimension")
        return tuple(sorted({dim % rank for dim in numbers})) if rank else ()


def _integers(value: Value) -> tuple[int, ...] | None:
    """Return the integers in a list, or one integer; None if there is anything else."""
    items = value if isinstance(value, tuple) else (value,)
    numbers = tuple(item for item in items if isinstance(item, int))
    return numbers if len(numbers) == len(items) else None


def with_dtype(value: Value, dtype: str) -> Value:
    """Return the value with this dtype if it has none."""
    if isinstance(value, Tensor):
        return replace(value, dtype=dtype) if value.dtype is None else value
    if isinstance(value, tuple):
        return tuple(with_dtype(item, dtype) for item in value)
    if isinstance(value, Summary) and value.dtype is None:
        return replace(value, dtype=dtype)
    return value
