"""Advice on what autograd costs: unneeded gradients, indexing of large tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof import schema
from pyprof.analysis.advice.cpu import of_calls
from pyprof.analysis.advice.finding import Advice
from pyprof.analysis.advice.loops import INDEXING, MIN_SHARE, find_sites, taken_ns
from pyprof.analysis.advice.registry import CAPTURE, OPS, rule
from pyprof.analysis.advice.rule_context import is_most
from pyprof.analysis.time.cpu_idle import ranges_named
from pyprof.analysis.time.intervals import union_of
from pyprof.arrays import MISSING
from pyprof.gpu.eligible import FAMILIES
from pyprof.marker import decode_name
from pyprof.ops.dtypes import is_floating
from pyprof.records.records import combinations

if TYPE_CHECKING:
    import pyarrow as pa

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.marker import Call

_MAX_OF_FORWARD = 0.4
"""Maximum share of a forward pass that gradients cost: 0.05 for a large MLP, 0.25 for a small one,
0.4 for convolutions (torch 2.13 on a CPU, against torch.no_grad())."""
_AGAIN = 2
"""Minimum number of unused forward passes: the capture may end before the last one is used. A pass
begins with the first site that is not used: others may be of layers in a loop."""


@rule(
    "a backward pass uses them, sooner or later",
    "torch.no_grad() or inference_mode() is on, or nothing needs gradients",
    "the capture ends before the backward pass",
    "the GPU is busy: its kernels are the same without gradients",
    about="gradients",
    needs=(OPS,),
)
def unused_gradients(context: RuleContext) -> Advice | None:
    """Find forward passes that record what a backward pass needs, although none follows."""
    rows, used = _find_recorded(context)
    if not len(rows):
        return None
    product = context.family(*FAMILIES)[rows]
    unused = rows[product & ~used]
    # the backward pass of the last forward pass may lie beyond the end of the capture
    of_row = find_sites(context).of_row
    if _count_passes(context, rows[~used], of_row) < _AGAIN:
        return None
    sites = of_row[unused]
    unused, sites = unused[sites != MISSING], sites[sites != MISSING]
    calls = combinations(sites, context.table.named_call[unused])[0]
    often = np.bincount(sites[calls], minlength=int(sites.max(initial=-1)) + 1) >= _AGAIN
    unused = unused[often[sites]]
    # all unused rows of the runs that contain these rows
    run = np.cumsum(np.append(False, np.diff(used) != 0))
    evidence = rows[np.isin(run, run[np.isin(rows, unused)]) & ~used]
    ns = taken_ns(context)[evidence]
    # without gradients a GPU runs the same kernels: only the host has less to do between them
    of_host = np.where(context.kind(schema.CPU)[evidence], ns, ns - context.ns[evidence])
    return context.advice(
        "a forward pass keeps all that a backward pass needs, and none follows",
        "with torch.inference_mode(): out = model(x) (or torch.no_grad()): less time, and its"
        " memory is free again at once",
        evidence,
        context.most(evidence, of_host * _MAX_OF_FORWARD),
        weight=ns,
        min_share=MIN_SHARE * _MAX_OF_FORWARD,
    )


def _count_passes(context: RuleContext, unused: Int64Array, site_of_row: IntArray) -> float:
    """Count the calls of the first site of unused rows, per process."""
    rows = unused[site_of_row[unused] != MISSING]
    first = rows[site_of_row[rows] == site_of_row[rows[:1]]]
    calls, processes = (
        len(np.unique(numbers[first]))
        for numbers in (context.table.named_call, context.table.records.numpy("pid"))
    )
    return calls / max(processes, 1)


def _find_recorded(context: RuleContext) -> tuple[Int64Array, Mask]:
    """Return forward rows whose op made nodes of autograd's graph, and whether these were used.

    They are calls after which the number of the next node, which PyTorch records, is higher, by
    thread and in order of time; used are nodes to which a row of a backward pass belongs. A
    call begins with the number of its outermost op: `linear` makes a node of the transposed weight
    before that of its product.
    """
    records = context.table.records
    seq = _numbers_at(records.arrow("seqId"), last=True)
    outer = _numbers_at(records.arrow("altSeqId"), last=False)
    outermost = np.where(outer == MISSING, seq, np.minimum(outer, seq))
    backward = context.is_one("dir", "bprop")
    rows = np.flatnonzero(context.chosen & (seq >= 0) & ~backward & ~context.is_one("dir", "optim"))
    pid, thread = records.numpy("pid")[rows], records.numpy("tid")[rows]
    order = np.lexsort((context.starts[rows], thread, pid))
    rows, thread = rows[order], thread[order]
    call = context.table.named_call[rows]
    ends = np.flatnonzero(np.append(np.diff(call) != 0, True))
    after = np.append(ends + 1, 0)[np.searchsorted(ends, np.arange(len(rows)))]
    after = np.minimum(after, len(rows) - 1)
    begin, end = seq[rows], np.where(thread[after] == thread, outermost[rows[after]], 0)
    nodes = np.sort(seq[backward & (seq >= 0)])
    used = np.searchsorted(nodes, end) > np.searchsorted(nodes, begin)
    if records.numpy("recomputed").max(initial=0) == 1:
        # all work of a reentrant checkpoint's node, the outermost of PyTorch's ranges and no op,
        # has the numbers of the ops that it ran again
        used |= records.templates().matches(
            lambda texts: bool(texts) and "::" not in decode_name(texts[0])
        )[rows]
    made = end > begin
    return rows[made], np.asarray(used[made])


def _numbers_at(lists: pa.Array, *, last: bool) -> Int64Array:
    """Return the first or last number of each list; MISSING if it is empty."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    numbers = np.append(np.asarray(lists.flatten()), MISSING)
    index = np.cumsum(lengths) - (1 if last else lengths)
    return np.where(lengths > 0, numbers[index], MISSING)


@rule(
    "the script looks for NaN itself, outside the backward pass",
    about="gradients",
    needs=(OPS, CAPTURE),
)
def anomaly_detection(context: RuleContext) -> Advice | None:
    """Find the check of each gradient for NaN that autograd's anomaly detection makes.

    Its forward pass is slower, too, by a time that no range has, so the gain is unknown.
    """
    if context.capture is None:
        return None
    checks = context.inside(union_of(*ranges_named(context.capture, r"^aten::_is_any_true\b")))
    calls = context.calls
    is_node = calls.name.matches(lambda name: name.startswith("evaluate_function: "))
    checked = np.flatnonzero(is_node & (checks.length_within(calls.start, calls.end) > 0))
    if not len(checked):
        return None
    return Advice(
        title="anomaly detection keeps a stack of each op and looks for NaN in each gradient",
        action="leave out torch.autograd.set_detect_anomaly(True), detect_anomaly() or a trainer's"
        " detect_anomaly=True, once the error is found",
        gain_ns=None,
        evidence=of_calls(context, checked, (calls.end - calls.start)[checked]),
    )


_MIN_SHARE = 0.1


@rule(
    "it is a small part of the time",
    "the forward pass takes the time",
    "as many rows or elements are taken as there are, which all have a gradient to add",
    "the gradient is sparse already",
    about="gradients",
    needs=(OPS,),
)
def indexing_backward(context: RuleContext) -> Advice | None:
    """Find indexing whose backward pass, which fills a tensor as large as the whole, takes long."""
    sites, backward = find_sites(context), context.is_one("dir", "bprop")
    indexing = context.is_op(INDEXING)
    forward = indexing & ~backward & (sites.of_row >= 0)
    takes_all, is_sparse, by_number = (
        np.isin(sites.of_row, sites.of_row[forward & context.call_matches(test)])
        for test in (_takes_all, _asks_for_sparse, _takes_rows)
    )
    rows = np.flatnonzero(indexing & backward & ~takes_all & ~is_sparse)
    ns = taken_ns(context)[rows]
    gain_ns = context.most(rows, ns)
    if gain_ns is None or gain_ns < _MIN_SHARE * context.span_ns:
        return None
    by_number |= context.is_op({"index"})  # traces lack the types of its indices
    if np.median(sites.repeats()[rows]) > 1:
        action = _AT_ONCE
    elif is_most(ns, context.is_op(_LOOK_UPS)[rows]):
        action = _SPARSE
    elif is_most(ns, by_number[rows]):
        action = f"{_LOOK_UP}; {_SPARSE}"
    else:
        action = _PART_FIRST
    return context.advice(
        "the backward pass of indexing fills a tensor of the size of the whole for each part",
        action,
        rows,
        gain_ns,
        weight=ns,
    )


_LOOK_UPS = frozenset({"embedding", "embedding_bag", "index_select"})
_AT_ONCE = (
    "take all parts at once: rows = table[ids] (not [table[i] for i in ids]), x.unbind(),"
    " x.split(size) or x.view(..., parts, size) instead of slices in a loop"
)
_LOOK_UP = "F.embedding(ids, table) or table.index_select(0, ids) instead of table[ids]"
_SPARSE = (
    "sparse=True in nn.Embedding or nn.EmbeddingBag, with optim.SparseAdam, where few rows of a"
    " parameter are used"
)
_PART_FIRST = (
    "take the part before ops that treat all parts alike: layer(x[:, i]) instead of layer(x)[:, i]"
)


def _takes_rows(call: Call) -> bool:
    """Whether an op takes rows by their numbers, as table[ids] does."""
    numbers = [each for each in call.tensors if not is_floating(each.dtype)]
    by_row = call.op not in _BY_ELEMENT
    return by_row and [each.dtype for each in numbers] in (["int64"], ["int32"])


_BY_ELEMENT = frozenset({"gather", "take", "take_along_dim"})


def _asks_for_sparse(call: Call) -> bool:
    """Whether a look-up has `sparse=True`, which is its second flag where flags have no names."""
    flags = [each for each in call.args if isinstance(each, bool)]
    return call.op in _LOOK_UPS and call.kwargs.get("sparse", flags[1:2] == [True]) is True


def _takes_all(call: Call) -> bool:
    """Whether an op's index names at least as many rows, or elements, as its tensor has."""
    values = [each for each in call.tensors if is_floating(each.dtype)]
    taken = max((each.numel for each in call.tensors if each not in values), default=0)
    if call.op in _BY_ELEMENT:
        return taken >= max((each.numel for each in values), default=math.inf)
    return taken >= max((size for each in values for size in each.shape), default=math.inf)
