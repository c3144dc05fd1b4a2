"""Which op call a kernel works for: chosen once per distinct context.

It is the deepest enclosing call whose op has a formula with a result. A kernel of the backward pass
works for the op that PyTorch called there (`aten::mm` inside AddmmBackward0), else for the backward
of its forward call.

On the CPU it is the outermost such call: there, a row is itself an op inside ops, so that a call
and the ops inside it would both be charged.

A layer of functorch (`torch.func`) calls the requested op again with the same arguments, and then
others with what those stand for: the sizes of a batch, a value and its derivative. If it passes on
its stack, profilers record the arguments of the calls around it, too, before the call's own.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from itertools import islice, pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple

from pyprof import ops
from pyprof.gpu.kernel_dtypes import FLOATS
from pyprof.marker import Kind, Summary, Tensor
from pyprof.marker.model import DERIVED
from pyprof.ops import registry
from pyprof.ops.registry import BPROP, FPROP
from pyprof.prof.calls.attributed_call import OWN, AttributedCall, family

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyprof.marker import Call, Statement, Value
    from pyprof.prof.kernels.kernel_context import KernelContext


class Candidate(NamedTuple):
    """An enclosing call that may be what kernels work for."""

    work: AttributedCall
    has_formula: bool
    usable: bool
    """Whether its formula has a result; the first such call is the choice."""
    reason: str
    """Why it is not usable."""


def candidates(context: KernelContext) -> Iterator[Candidate]:
    """Go through the enclosing calls in the order of preference, up to the first usable one."""
    works = [*(_cpu_candidates if context.on_cpu else _gpu_candidates)(context)]
    for place, work in enumerate(works, 1):
        if work.call is None or not ops.known(work.call):
            reason = "its text contains no op" if work.call is None else "no formula"
            yield Candidate(work, has_formula=False, usable=False, reason=reason)
            continue
        cost = work.cost()
        usable = cost.flops is not None or (
            cost.bytes is not None and not any(map(partial(_states_mask, work), works[place:]))
        )
        yield Candidate(work, has_formula=True, usable=usable, reason=cost.reason)
        if usable:
            return


def _states_mask(work: AttributedCall, other: AttributedCall) -> bool:
    """Whether another call of the same attention states what FLOPs depend on: `is_causal`.

    emit_nvtx does not write it, the marker around does. One around the parts of a ring has other
    queries: a DTensor's are those of all ranks.
    """
    return (
        family(work) == family(other) == "attention"
        and _queries(work) == _queries(other)
        and other.cost().flops is not None
    )


def _queries(work: AttributedCall) -> int | None:
    """Count the queries of attention, whose heads may be padded or at another place."""
    tensors = work.call.tensors if work.call is not None else ()
    return math.prod(tensors[0].shape[:-1]) if tensors else None


def choose(context: KernelContext) -> AttributedCall:
    """Choose the op call that kernels in this context work for."""
    if stopped := _find_stopped(context):
        return stopped
    costed = [each for each in candidates(context) if each.has_formula]
    if not costed:
        for work in _candidates(context):
            if work.call is not None and work.call.op and not work.call.op.startswith(DERIVED):
                reason = f"unknown op {work.call.op}"
                return AttributedCall(
                    call=None, direction=work.direction, position=work.position, reason=reason
                )
        return AttributedCall(call=None, direction=FPROP, reason=_why_no_op(context))
    if costed[-1].usable:
        return costed[-1].work
    return replace(costed[0].work, reason=costed[0].reason, output=None)


def _why_no_op(context: KernelContext) -> str:
    """Return why no op is stated."""
    if context.replayed:
        return UNSEEN
    if context.in_frames:
        return "launched in no op"
    if context.in_range:
        return "only ranges, no op"
    return UNLAUNCHED if context.unlaunched else "no marker"


UNLAUNCHED = "launch unknown"
"""Why no range is around a kernel: where it was launched was not recorded."""
UNSEEN = (
    "in a CUDA graph, and no marker of its capture was recorded: call pyprof.init() and start "
    "profiling before the graph is captured (in nsys with --cuda-graph-trace=node)"
)
"""Why nothing is known of what a graph replays."""


def own_flops(context: KernelContext) -> int | None:
    """FLOPs of the innermost op alone; None if unknown."""
    work = None if _find_stopped(context) else next(_candidates(context), None)
    if work is None or work.call is None or work.direction == BPROP or not ops.known(work.call):
        return None
    return work.cost().flops


def own_dtypes(context: KernelContext) -> set[str | None]:
    """The floating types of the innermost op's tensors."""
    work = next(_candidates(context), None)
    tensors = work.call.tensors if work is not None and work.call is not None else ()
    return {tensor.dtype for tensor in tensors} & FLOATS


def _gpu_candidates(context: KernelContext) -> Iterator[AttributedCall]:
    """The enclosing calls, deepest first; in a backward pass, then those of the forward op."""
    candidates = [*_candidates(context)]
    own = [work.call for work in candidates if work.direction == FPROP]
    if (functorch_call := innermost(own)) is not None and functorch_call[0] == 0:
        yield replace(candidates.pop(0), call=functorch_call[1])
    yield from candidates


def _cpu_candidates(context: KernelContext) -> list[AttributedCall]:
    """The enclosing calls, outermost first; in a backward pass, then those of the forward op.

    Of the forward op's calls, only the one that the node belongs to counts, with its marker if no
    other PyTorch range is around it: an op around other ops may have several nodes.
    """
    candidates = list(_candidates(context))
    own = [work for work in candidates if work.direction == FPROP]
    back = (work for work in candidates if work.direction == BPROP)
    nodes_own = islice(back, 1 if len(context.fwd_seqs) > 1 else 2)
    return [*_outermost_charged(own, context.statements), *nodes_own]


STOPPED = "stopped: gradient checkpointing needed no more than what ran before it"


def _outermost_charged(
    calls: Sequence[AttributedCall], around: Sequence[Statement]
) -> list[AttributedCall]:
    """Return those calls around a row that may be charged, the outermost first.

    `calls` are the deepest first, at positions of `around`. Left out are calls that stopped before
    their end, and calls on a tensor of functorch: these hide the sizes of a batch, and may stand
    for several ops. What functorch calls inside shows all. So do calls inside one that a tensor
    subclass replaced: that on a DTensor has the sizes of all ranks together.
    """

    def ran_itself(work: AttributedCall) -> bool:
        said = around[work.position]
        return not said.is_stopped and not said.is_subclass

    ran = [*takewhile(ran_itself, calls)]
    functorch_call = innermost([work.call for work in ran])
    if functorch_call is not None:
        index, call = functorch_call
        ran = [*ran[:index], replace(ran[index], call=call)]
    return ran[::-1]


def _find_stopped(context: KernelContext) -> AttributedCall | None:
    """The call of an op on the CPU that began and never ran; None if it ran."""
    around = context.statements
    index = (context.order or range(len(around)))[-1] if around else OWN
    if not context.on_cpu or index == OWN or not around[index].is_stopped:
        return None
    return AttributedCall(call=None, direction=FPROP, position=index, reason=STOPPED)


def _candidates(context: KernelContext) -> Iterator[AttributedCall]:
    """The enclosing calls, deepest first; in a backward pass, then those of the forward op."""
    dtype = _dtype(context)
    attributed = partial(AttributedCall, call_context=context.call_context)
    statements = context.statements
    order = context.order or tuple(range(len(statements)))
    node = _node(statements, order)
    inward = [None, *(statements[index].call for index in order)]
    operands = (each for said in context.markers if said.call for each in said.call.tensors)
    sparse_tensors = {tensor.shape: tensor for tensor in operands if tensor.nnz is not None}
    for around, index in zip(reversed(inward[:-1]), reversed(order), strict=True):
        if index == node:
            break  # what is around a backward node is not what it computes
        call = with_sparse_layout(statements[index].call, sparse_tensors)
        call = as_marked(call, context.markers)
        if call is not None and node is not None:
            call = with_expanded_strides(call, statements[node])
        output = context.result if index == order[-1] else None
        if call is not None and around is not None:
            call = as_unary(call, around)
            output = output or ops.result_shape(call, around)
        lacking = _missing_dtype(call, dtype)
        yield attributed(call=call, direction=FPROP, dtype=lacking, position=index, output=output)
    if context.backward:
        output = _node_sizes(statements[node]) if node is not None else None
        position = node if node is not None else OWN
        for said in (*reversed(context.fwd_seqs), *reversed(context.fwd_markers)):
            call = as_marked(said.call, context.fwd_markers)
            lacking = _missing_dtype(call, dtype)
            yield attributed(
                call=call, direction=BPROP, dtype=lacking, position=position, output=output
            )


def _missing_dtype(call: Call | None, dtype: str | None) -> str | None:
    """The dtype, if a tensor of the call lacks one or the call has no tensors."""
    dtypes = [tensor.dtype for tensor in call.tensors] if call is not None else []
    return None if dtypes and all(dtypes) else dtype


def node_output(context: KernelContext) -> tuple[int, ...] | None:
    """Shape of the forward op's result: that of the gradient its backward node received."""
    if not context.backward:
        return None
    around = context.statements
    node = _node(around, context.order or tuple(range(len(around))))
    return _node_sizes(around[node]) if node is not None else None


def _node(around: Sequence[Statement], order: Sequence[int]) -> int | None:
    nodes = (at for at in reversed(order) if around[at].kind == Kind.SEQ and around[at].is_node)
    return next(nodes, None)


def _node_sizes(node: Statement) -> tuple[int, ...] | None:
    """Return the shape of a backward node's incoming gradient: that of the forward's output."""
    call = node.call
    gradient = call.args[0] if call and len(call.args) == 1 else None
    return gradient.shape if isinstance(gradient, Tensor) else None


def _dtype(context: KernelContext) -> str | None:
    """Return the dtype of the op, if the calls around it agree on one."""
    for around in (context.markers, context.fwd_markers, context.seqs, context.fwd_seqs):
        for call in (said.call for said in reversed(around)):
            dtypes = {tensor.dtype for tensor in call.tensors if tensor.dtype} if call else set()
            if dtypes:
                return dtypes.pop() if len(dtypes) == 1 else None
    return None


def innermost(calls: Sequence[Call | None]) -> tuple[int, Call] | None:
    """Find the deepest call that a layer of functorch made: its index, and its own arguments.

    `calls` are the deepest first. None if no layer shows.
    """
    for index, (inner, outer) in enumerate(pairwise(calls)):
        if inner is None or outer is None:
            continue
        times = len(inner.args) // max(len(outer.args), 1)
        if _same_op(inner, outer) and times > 0 and inner.args == outer.args * times:
            # leave out the arguments that belong to the calls around it
            args, stated = inner.args, (call for call in calls[index:] if call is not None)
            around = [each.args for each in takewhile(partial(_same_op, inner), stated)]
            repeated = [
                len(under) for under in around
                if under and not len(args) % len(under) and args[: len(under)] == under
            ]  # fmt: skip
            return index, replace(inner, args=args[-min(repeated) :])
    return None


def _same_op(one: Call, other: Call) -> bool:
    return (one.mod, one.op) == (other.mod, other.op)


_REPEATS = re.compile(r"MeanBackward\d*")
"""Nodes whose division reads what they expanded (torch/csrc/autograd/FunctionsManual.cpp)."""
_WITH_ITSELF = {"ne": "isnan", "eq": "isfinite"}
"""Comparisons, and the ops that call them with their one tensor as both operands."""


def as_unary(call: Call, around: Call) -> Call:
    """Return the call with one operand if the enclosing op passed it the same tensor twice."""
    same = _WITH_ITSELF.get(call.op) == around.op
    twice = len(call.args) > 1 and call.args[0] == call.args[1]
    return replace(call, args=call.args[:1]) if same and twice else call


def with_expanded_strides(call: Call, node: Statement) -> Call:
    """Return a call of a backward node with the strides of the gradient that the node expands."""
    incoming = node.call.args if node.call is not None else ()
    if call.op != "div" or not _REPEATS.fullmatch(node.name) or len(incoming) != 1:
        return call
    gradient, first = incoming[0], call.args[0] if call.args else None
    if not isinstance(gradient, Tensor) or not isinstance(first, Tensor) or first.stride:
        return call
    stride = _strides(gradient.shape, first.shape)
    if stride is None:
        return call
    return replace(call, args=(replace(first, stride=stride), *call.args[1:]))


def _strides(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that expand one shape to another, 0 along repeated dimensions; None if impossible.

    Dimensions that a mean removed are absent from the small shape: the others are matched from the
    last on.
    """
    left = [size for size in small if size != 1]
    stride, step = [], 1
    for size in reversed(large):
        repeats = not left or left[-1] != size
        stride.append(0 if repeats else step)
        if not repeats:
            step *= left.pop()
    return None if left else tuple(reversed(stride))


def as_marked(call: Call | None, markers: Sequence[Statement]) -> Call | None:
    """Return a call of PyTorch's own as the innermost marker states it, if that is the same call.

    emit_nvtx writes the sizes of tensors alone: no exponent, no `dim`, no types. Where the marker's
    op is another on the same tensors, only their types are taken.
    """
    marked = markers[-1].call if markers else None
    if call is None or marked is None or not marked.whole:
        return call
    own, stated = call.tensors, [tensor for tensor in marked.tensors if tensor.shape]
    if not own or any(tensor.dtype for tensor in own):
        return call
    model = registry.find(call)
    if model is not None and model is registry.find(marked):
        same = registry.plain_name(call.op) == registry.plain_name(marked.op)
        if same and _elements(call.args) == _elements((*marked.args, *marked.kwargs.values())):
            return marked
    dtypes = {tensor.dtype for tensor in stated}
    alike = [tensor.shape for tensor in own] == [tensor.shape for tensor in stated]
    if not alike or None in dtypes or len(dtypes & FLOATS) > 1:
        return call
    typed = iter(stated)
    return replace(
        call,
        args=tuple(
            replace(value, dtype=next(typed).dtype) if isinstance(value, Tensor) else value
            for value in call.args
        ),
    )


def _elements(values: Iterable[Value]) -> int:
    """Count the elements of tensors, but of those without dimensions: emit_nvtx omits them."""
    count = 0
    for value in values:
        if isinstance(value, Tensor):
            count += value.numel if value.shape else 0
        elif isinstance(value, tuple):
            count += _elements(value)
        elif isinstance(value, Summary) and _elements(value.items):
            count += value.numel or 0
    return count


def with_sparse_layout(
    call: Call | None, sparse_by_shape: Mapping[tuple[int, ...], Tensor]
) -> Call | None:
    """Replace arguments of unknown layout by the sparse tensor of the same shape.

    PyTorch's own ranges have no layout, and so seem to multiply dense matrices.
    """
    if call is None or not sparse_by_shape:
        return call
    return replace(call, args=tuple(_with_layout(value, sparse_by_shape) for value in call.args))


def _with_layout(value: Value, sparse_by_shape: Mapping[tuple[int, ...], Tensor]) -> Value:
    if not isinstance(value, Tensor) or value.nnz is not None:
        return value
    may_be_sparse = value.sparse or (value.dtype is None and value.stride is None)
    return sparse_by_shape.get(value.shape, value) if may_be_sparse else value
