"""What one call of an op costs, or why that is unknown. Never raises."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyprof.marker import Opaque
from pyprof.ops import dtypes, registry
from pyprof.ops.signature import Unknown, bind, parse
from pyprof.ops.work import EMPTY_CONTEXT, NOT_STORED, Args, tensor_bytes, with_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyprof.marker import Call, Value
    from pyprof.ops.registry import OpModel
    from pyprof.ops.work import CallContext

_NOT_DENSE = "bprop, sparse"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call of an op costs. None is unknown, never zero, for the reason in `reason`."""

    flops: int | None
    """Arithmetic operations; a fused multiply-add is two."""
    bytes: int | None
    """Least DRAM traffic: each input read once, each output written once."""
    params: Mapping[str, object] = field(default_factory=dict)
    """What the numbers were computed from: M, N, K, shapes, dtype, ... Not to be changed."""
    reason: str = ""
    written: int = 0
    """Bytes of the largest tensor that it writes; 0 if unknown."""
    added: int = 0
    """Bytes moved by a kernel that serves only a product's bias; 0 if there is no bias."""
    via: str = ""
    """Sources of the numbers besides the call's arguments."""
    stages: tuple[int, ...] = ()
    """Its shares for the kernels, in their order, if there are as many; () to divide it by time."""


def cost(
    call: Call,
    direction: str = registry.FPROP,
    *,
    gemm_kernels: int | None = None,
    dtype: str | None = None,
    output: tuple[int, ...] | None = None,
    context: CallContext = EMPTY_CONTEXT,
) -> Cost:
    """Return the cost of a call, or with direction "bprop" that of its whole backward pass.

    `bprop` is for a backward node whose forward call alone is known; a call that was recorded in
    the backward pass (`aten::mm` inside AddmmBackward0) is a call like any other: `fprop`.
    `gemm_kernels` is how many GEMM or convolution kernels the backward node launched: if it is 1,
    one of the two gradients was not needed, and one is charged. `dtype` stands for the dtypes that
    the call does not hold; `output` is its first output's shape, if a capture shows it elsewhere
    (in the backward node's incoming gradient), for the ops whose arguments emit_nvtx leaves out;
    `context` is what else is known about the call. Never raises: what a formula raises becomes the
    reason.
    """
    try:
        return _cost(call, direction, gemm_kernels, dtype, output, context)
    except Exception as error:  # noqa: BLE001 - a formula never ends a report
        return Cost(None, None, {}, f"failed formula: {type(error).__name__}: {error}")


def known(call: Call) -> bool:
    """Whether the call's op has a formula and does work: then it is the op that counts.

    False for a view: `find` distinguishes it from an unknown op.
    """
    model = registry.find(call)
    return model is not None and model.work


def with_argument(call: Call, name: str, value: Value) -> Call:
    """Return the call with `value` for an unrecorded argument; unchanged if it has none."""
    model = registry.find(call)
    for signature in model.signatures if model is not None and registry.by_position(call) else ():
        for at, (parameter, recorded) in enumerate(zip(parse(signature), call.args, strict=False)):
            if parameter.name == name and isinstance(recorded, Opaque):
                return replace(call, args=(*call.args[:at], value, *call.args[at + 1 :]))
    return call


def result_shape(call: Call, around: Call) -> tuple[int, ...] | None:
    """Return the shape of the call's result if the call around it has it as an argument."""
    model, outer = registry.find(call), registry.find(around)
    if model is None or outer is None or model.result is None:
        return None
    name, argument = model.result
    if name not in outer.names:
        return None
    try:
        argument_shape = _bind(outer, around, None).optional(argument)
    except Unknown:
        return None
    return argument_shape.shape if argument_shape is not None else None


def _cost(
    call: Call,
    direction: str,
    gemm_kernels: int | None,
    dtype: str | None,
    output: tuple[int, ...] | None,
    context: CallContext,
) -> Cost:
    model = registry.find(call, direction)
    if model is not None and model.work and any(tensor.sparse for tensor in call.tensors):
        # other formulas take every tensor as dense
        direction = _NOT_DENSE if direction == registry.BPROP else registry.SPARSE
        model = registry.find(call, direction)
    if model is None:
        return Cost(None, None, _shapes(call), _why_no_formula(call, direction))
    try:
        args = replace(
            _bind(model, call, dtypes.canonical(dtype)),
            gemm_kernels=gemm_kernels,
            output=output,
            context=context,
        )
        work = model.formula(args)
    except Unknown as unknown:
        nothing = not call.args and not call.kwargs
        reason = "shapes not recorded" if nothing else str(unknown)
        return Cost(None, None, _shapes(call), reason)
    stated = {name: value for name, value in work.params.items() if value is not None}
    params = stated or _shapes(call)
    if work.flops is not None and work.flops < 0:
        raise ValueError("negative FLOPs")
    try:
        written = max(map(tensor_bytes, work.writes), default=0)
        added = sum(map(tensor_bytes, work.added))
        moved = work.moved_bytes()
        return Cost(
            *(work.flops, moved, params, work.no_flops, written, added, work.via, work.stages)
        )
    except Unknown as unknown:
        return Cost(work.flops, None, params, str(unknown), via=work.via)


def _why_no_formula(call: Call, direction: str) -> str:
    if registry.find(call) is None:
        return f"unknown op {call.op}"
    if direction in (registry.SPARSE, _NOT_DENSE):
        recorded = all(tensor.nbytes is not None for tensor in call.tensors if tensor.sparse)
        return f"no formula for sparse tensors of {call.op}" if recorded else NOT_STORED
    return f"no backward formula for {call.op}" if direction == registry.BPROP else "unknown op"


def _bind(model: OpModel, call: Call, dtype: str | None) -> Args:
    plain, in_place = registry.plain_name(call.op)
    reason = "arguments do not fit the op"
    signatures: Iterable[str] = model.signatures
    if by_position := registry.by_position(call):
        # first the signatures with as many parameters as the call has arguments
        signatures = sorted(signatures, key=lambda text: len(parse(text)) != len(call.args))
    for signature in signatures:
        try:
            values = bind(call, signature, by_position=by_position)
        except Unknown as unknown:
            reason = str(unknown)
            continue
        if dtype is not None:
            values = {name: with_dtype(value, dtype) for name, value in values.items()}
        if "size" in call.collective:
            values = {**values, "group_size": call.collective["size"]}
        return Args(plain, in_place, values, call.mod)
    raise Unknown(reason)


def _shapes(call: Call) -> dict[str, object]:
    """Return the tensors' shapes and the first dtype, for the report's `params`."""
    operands = call.tensors
    if not operands:
        return {}
    params: dict[str, object] = {"T": tuple(tensor.shape for tensor in operands)}
    known_dtypes = [tensor.dtype for tensor in operands if tensor.dtype]
    return params | ({"type": known_dtypes[0]} if known_dtypes else {})
