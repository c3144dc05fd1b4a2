"""Which op call a kernel works for: chosen once per distinct set of texts around kernels.

It is the deepest enclosing call whose op has a formula that can say something. A kernel of the
backward pass works for the op that PyTorch called there (`aten::mm` inside AddmmBackward0), else
for the backward of its forward call.

On the CPU it is the outermost such call: what is a kernel on the GPU is there an op inside of ops,
so that a call and the ops that it is made of would both be charged.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from pyprof import marker, ops
from pyprof.marker import Kind, Tensor
from pyprof.ops.registry import BPROP, FPROP
from pyprof.parse.backward_nodes import is_node
from pyprof.parse.paths import tensors
from pyprof.prof import functorch, on_cpu
from pyprof.prof.chosen_call import OWN, Work
from pyprof.prof.operands import stored, with_itself, with_repeats, with_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.marker import Call
    from pyprof.prof.kernel_context import Situation


# --- choosing -----------------------------------------------------------------------------------


def choose(situation: Situation) -> Work:
    """Choose the op call that kernels in this situation work for."""
    if stopped := _own_stopped(situation):
        return stopped
    reasons = []
    for work in (_cpu_candidates if situation.on_cpu else _gpu_candidates)(situation):
        if work.call is None or not ops.known(work.call):
            continue
        cost = work.cost()
        if cost.flops is not None or cost.bytes is not None:
            return work
        reasons.append((work, cost.reason))
    if reasons:
        work, reason = reasons[0]
        return Work(work.call, work.direction, work.dtype, work.position, reason)
    return _unknown(situation)


def _unknown(situation: Situation) -> Work:
    for work in _candidates(situation):
        if work.call is not None and work.call.op:
            return Work(None, work.direction, None, work.position, f"unknown op {work.call.op}")
    return Work(None, FPROP, None, OWN, UNSEEN if situation.replayed else "no marker")


UNSEEN = (
    "in a CUDA graph, and no marker of its capture was recorded: call pyprof.init() and start "
    "profiling before the graph is captured (nsys: with --cuda-graph-trace=node)"
)
"""Why nothing is known of what a graph replays."""


def own_flops(situation: Situation) -> int | None:
    """Give the FLOPs of the innermost op alone, None where they are not known."""
    work = None if _own_stopped(situation) else next(_candidates(situation), None)
    if work is None or work.call is None or work.direction == BPROP or not ops.known(work.call):
        return None
    return work.cost().flops


def _gpu_candidates(situation: Situation) -> Iterator[Work]:
    """Give the enclosing calls, the deepest first; in a backward pass, then the forward's."""
    found = [*_candidates(situation)]
    own = [work.call for work in found if work.direction == FPROP]
    if (made := functorch.innermost(own)) is not None and made[0] == 0:
        yield replace(found.pop(0), call=made[1])
    yield from found


def _cpu_candidates(situation: Situation) -> list[Work]:
    """Give the enclosing calls, the outermost first; in a backward pass, then the forward's.

    Of the forward's, that counts to which the node belongs, with what called it from Python: an op
    around other ops may have several nodes.
    """
    found = list(_candidates(situation))
    own = [work for work in found if work.direction == FPROP]
    back = (work for work in found if work.direction == BPROP)
    nodes_own = islice(back, 1 if len(situation.fwd_seqs) > 1 else 2)
    return [*on_cpu.outermost(own, situation.texts), *nodes_own]


def _own_stopped(situation: Situation) -> Work | None:
    """Give what says that the op of a row on the CPU never ran; None where it did."""
    texts = situation.texts
    place = (situation.order or range(len(texts)))[-1] if texts else OWN
    if not situation.on_cpu or place == OWN or not on_cpu.stopped(texts[place]):
        return None
    return Work(None, FPROP, None, place, on_cpu.STOPPED)


def _candidates(situation: Situation) -> Iterator[Work]:
    """Give the enclosing calls, the deepest first; in a backward pass, then the forward's."""
    dtype = _dtype(situation)
    texts = situation.texts
    order = situation.order or tuple(range(len(texts)))
    node = _node(texts, order)
    inward = [None, *(texts[place] for place in order)]
    known = stored(map(_call, situation.markers))
    for around, place in zip(reversed(inward[:-1]), reversed(order), strict=True):
        if place == node:
            break  # what is around a backward node is not what it computes
        call = with_stored(_call(texts[place]), known)
        if call is not None and node is not None:
            call = with_repeats(call, marker.decode_seq(texts[node]))
        if call is not None and around is not None:
            call = with_itself(call, _call(around))
        yield Work(call, FPROP, _lacking(call, dtype), place, output=_told_around(call, around))
    if situation.backward:
        output = _node_sizes(texts[node]) if node is not None else None
        position = node if node is not None else OWN
        for text in (*reversed(situation.fwd_seqs), *reversed(situation.fwd_markers)):
            call = _call(text)
            yield Work(call, BPROP, _lacking(call, dtype), position, output=output)


def _lacking(call: Call | None, dtype: str | None) -> str | None:
    """Give the dtype where a tensor of the call lacks one, or it has no tensors."""
    found = [tensor.dtype for tensor in tensors(call)] if call is not None else []
    return None if found and all(found) else dtype


def node_output(situation: Situation) -> tuple[int, ...] | None:
    """Give the shape of the forward's result, where the texts have the backward node's gradient."""
    if not situation.backward:
        return None
    texts = situation.texts
    node = _node(texts, situation.order or tuple(range(len(texts))))
    return _node_sizes(texts[node]) if node is not None else None


def _node(texts: Sequence[str], order: Sequence[int]) -> int | None:
    return next((place for place in reversed(order) if _is_node(texts[place])), None)


def _told_around(call: Call | None, text: str | None) -> tuple[int, ...] | None:
    """Give the shape of a call's result, where the text around the call tells it."""
    around = _call(text) if call is not None and text is not None else None
    return ops.result_shape(call, around) if call is not None and around is not None else None


def _is_node(text: str) -> bool:
    return marker.classify(text) == Kind.SEQ and is_node(text)


def _node_sizes(text: str) -> tuple[int, ...] | None:
    """Give the shape of a backward node's incoming gradient: that of the forward's output."""
    call = marker.decode_seq(text).call
    found = call.args[0] if call and len(call.args) == 1 else None
    return found.shape if isinstance(found, Tensor) else None


def _call(text: str) -> Call | None:
    if marker.classify(text) == Kind.OP:
        return marker.decode_op(text)
    return marker.decode_seq(text).call


def _dtype(situation: Situation) -> str | None:
    """Give the dtype of the op, where the texts around it agree on one."""
    for texts in (situation.markers, situation.fwd_markers, situation.seqs, situation.fwd_seqs):
        for text in reversed(texts):
            call = _call(text)
            found = {tensor.dtype for tensor in tensors(call) if tensor.dtype} if call else set()
            if found:
                return found.pop() if len(found) == 1 else None
    return None
