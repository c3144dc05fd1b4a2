"""Advice on what a step does again and again: loops over small ops, constants, tiny batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.registry import OPS, rule
from pyprof.analysis.advice.rule_context import idle_for
from pyprof.analysis.library import INDUCTOR
from pyprof.analysis.time.host_api import LAUNCH
from pyprof.analysis.time.idle import DISPATCH
from pyprof.analysis.time.idle import OPS as IN_OPS
from pyprof.arrays import MISSING
from pyprof.gpu.eligible import FAMILIES
from pyprof.gpu.roofline import LAUNCH_NS
from pyprof.records.records import combinations, number_combinations, number_lists

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Floats, Int64Array, IntArray, Mask
    from pyprof.marker import Call, Tensor
    from pyprof.records.records import DictionaryColumn

MIN_SHARE = 0.05
"""Minimum share of the time: every script spends less than this on such things."""
_FEW_ELEMENTS = 4096
"""Up to this many elements, an op takes as long as for one: its call costs more than its work."""
_FEW_FLOPS = 2e6
"""The same for a product: some 20 us of one core."""
_CORE_FLOPS_PER_NS = 100
"""A core's peak: the time of a product at this rate is not saved by a larger batch."""


def taken_ns(context: RuleContext) -> Floats:
    """Return the time of each row, plus the pause before it in which its op was dispatched."""
    ns = np.where(context.chosen, context.ns, 0.0)
    for devices, cause in (
        (context.cpus, DISPATCH), (context.cpus, IN_OPS), (context.devices, LAUNCH),
    ):  # fmt: skip
        rows, idle_ns = idle_for(context, cause, devices)
        np.add.at(ns, rows, idle_ns)
    return ns


class Sites(NamedTuple):
    """Rows by call site: the op, its stack, whose innermost lines may be a library's, and layer."""

    of_row: IntArray
    """The site of each row; MISSING without an op or a line, outside steps, and for the optimizer,
    communication, copies and data loading."""
    calls: Floats
    """How often a step calls each site's op, on average; 0 where most steps do not."""
    steps_known: bool
    has_layers: bool
    """Whether modules are recorded: else calls of several may share a site."""
    passes: float = 1.0
    """How often a step calls the most frequent `backward()`: where gradients accumulate, and where
    L-BFGS tries a step, everything repeats as often."""

    def repeats(self) -> Floats:
        """How often the step of each row calls the op at its site; 0 without a site."""
        return np.append(self.calls, 0.0)[self.of_row]


def find_sites(context: RuleContext) -> Sites:
    """Group the chosen rows by call site.

    Backward rows belong to the site of their forward call. Forward calls are counted, if they have
    rows, because one may have many backward nodes; so are those that checkpointing repeats.
    """
    table, records = context.table, context.table.records
    op, line = context.op.index, context.line.index
    trace, layer = table.own_or_forward("trace"), table.own_or_forward("layer")
    step = table.steps.of_row if table.steps is not None else np.full(records.rows, MISSING)
    wanted = (
        context.chosen & (op >= 0) & (line >= 0) & ~context.is_one("dir", "optim", "comm", "copy")
    )
    wanted &= ~_mark_loading(context)
    if steps_known := not context.once and bool((step[wanted] >= 0).any()):
        wanted &= step >= 0
    rows = np.flatnonzero(wanted)
    of_row = np.full(records.rows, MISSING, np.int64)
    of_row[rows] = number_combinations(
        *(column[rows] for column in (op, number_lists(trace), number_lists(layer)))
    )
    is_forward = ~context.is_one("dir", "bprop") | (records.numpy("recomputed") == 1)
    forward, count = rows[is_forward[rows]], int(of_row.max(initial=MISSING)) + 1
    calls = np.bincount(of_row[_first_rows(forward, of_row, table.named_call)], minlength=count)
    backward = np.bincount(of_row[_first_rows(rows, of_row, table.named_call)], minlength=count)
    repeats = np.where(calls > 0, calls, backward).astype(float)  # a view has backward rows only
    if steps_known:
        steps = np.bincount(of_row[_first_rows(rows, of_row, step)], minlength=count)
        repeats = np.where(steps >= _IN_STEPS * len(np.unique(step[rows])), repeats / steps, 0.0)
    order = rows[np.argsort(context.starts[rows], kind="stable")]
    begins = context.is_op(_ROOTS)[order[:-1]] & context.is_one("dir", "bprop")[order[1:]]
    passes = repeats[of_row[order[:-1][begins]]].max(initial=1)
    has_layers = any(layer.values)
    return Sites(of_row, repeats, steps_known=steps_known, has_layers=has_layers, passes=passes)


_ROOTS = frozenset({"ones_like"})
"""What `backward()` calls first, for the gradient of the loss itself."""
_IN_STEPS = 0.5
"""Minimum share of the steps in which a site occurs: a validation loop is in a few only."""


def _first_rows(rows: Int64Array, site: IntArray, what: IntArray) -> Int64Array:
    """Return the first row of each combination of `site` and `what`."""
    return rows[combinations(site[rows], what[rows])[0]]


def _mark_loading(context: RuleContext) -> Mask:
    """Mark the rows that began while data were loaded."""
    loading = context.loading
    if not len(loading):
        return np.zeros(context.table.records.rows, bool)
    start = context.table.records.numpy("start")
    index = np.searchsorted(loading.start, start, side="right") - 1
    return np.asarray((index >= 0) & (start < loading.end[np.maximum(index, 0)]))


def overhead(context: RuleContext) -> Floats:
    """Return the share of each row's time that its call would cost even with tiny tensors."""
    sizes = context.measure_calls(_size)
    of_size = np.where(sizes > 0, np.minimum(1, _FEW_ELEMENTS / np.maximum(sizes, 1)), 0.0)
    on_gpu = np.minimum(1, LAUNCH_NS / np.maximum(context.ns, 1))
    computing_ns = np.maximum(context.table.costs.flops, 0) / _CORE_FLOPS_PER_NS
    of_work = np.maximum(0, 1 - computing_ns / np.maximum(context.ns, 1))
    return np.where(context.kind(schema.CPU), np.minimum(of_size, of_work), on_gpu)


def _size(call: Call) -> int:
    """Return the size of an op's largest input, or of a product's first operand; 0 if unknown."""
    inputs = [each.numel for each in call.tensors]
    return max(inputs[:1] if _may_share_weight(call) else inputs, default=0)


_PRODUCTS = frozenset(
    {"linear", "addmm", "mm", "matmul", "__matmul__", "mv", "dot", "conv1d", "conv2d"}
)
"""Ops whose other operand is usually a weight, which a larger batch shares."""


def _may_share_weight(call: Call) -> bool:
    """Whether a larger batch may leave the other operand as it is: a batched one grows, too."""
    is_batched = any(len(each.shape) > 2 for each in call.tensors[1:])  # noqa: PLR2004 - a matrix
    return call.op in _PRODUCTS and (call.op.startswith("conv") or not is_batched)


_MANY = 8
"""Minimum number of calls from one line, in each pass over it, that make a loop."""
_MIN_LOOP = 0.01
"""Minimum share of the time that the advice saves."""
_VERY_MANY = 64
"""Replaces `_MANY` where steps or layers are unknown: fewer calls may be the loop over steps."""
INDEXING = frozenset(
    {"__getitem__", "index", "select", "index_select", "gather", "take", "narrow", "slice",
     "take_along_dim", "embedding", "embedding_bag"}
)  # fmt: skip
"""Ops that take a part of a tensor: their backward pass fills a tensor of the size of the whole."""
_CHOICES = frozenset({"multinomial", "argmax", "topk"})
"""Ops that choose, as a beam search does: a loop around one cannot be a single call."""
_CELLS = frozenset({"gru_cell", "rnn_tanh_cell", "rnn_relu_cell"})
"""Ops whose own ops nn.GRU and nn.RNN call in each turn, too, on a CPU: only Python is saved."""
_FILLS = frozenset(
    {"normal_", "uniform_", "zero_", "fill_", "bernoulli_", "exponential_", "log_normal_"}
)
"""Ops that fill a tensor that exists, as an initialisation does the parameters."""
JOINS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack", "dstack", "pad"})


@rule(
    "each call is of another module: layers alike",
    "the tensors are large: an op's call costs little beside its work",
    "a few calls a step",
    "the optimizer, which unfused_optimizer reports; and what a dataset does",
    "the loop grows a tensor, which growing_cat reports",
    "each turn chooses what the next one needs, as a token or an action",
    "on a CPU, a cell whose ops nn.GRU or nn.RNN calls in each turn, too",
    "each call fills a tensor of its own, as a parameter of a new model",
    "torch.compile made one graph of the line's ops",
    "each call is of another line of a library, which the user's line calls",
    "each turn ends with a backward pass: gradients accumulate, or L-BFGS tries a step",
    about="loops",
    needs=(OPS,),
)
def python_loop(context: RuleContext) -> Advice | None:
    """Find small ops that one line calls many times a step; most of their call cost can go."""
    sites = find_sites(context)
    repeats = _count_turns(context, sites)
    turns = max(repeats[context.is_op(_CHOICES)], default=0)
    least = _MANY if sites.steps_known and sites.has_layers else _VERY_MANY
    many = repeats >= least * max(turns, sites.passes)
    told_elsewhere = (context.is_op(INDEXING) & context.is_one("dir", "bprop")) | context.is_op(
        JOINS
    )
    apart = context.is_op(_FILLS) | _mark_compiled(context)
    rows = np.flatnonzero(many & _mark_instrumented(context) & ~told_elsewhere & ~apart)
    grown, _ = _find_growing(context)
    line = context.line.index
    if np.isin(line[grown], line[rows]).any():
        return None
    own_ns = context.ns[rows]
    pause_ns = taken_ns(context)[rows] - own_ns
    ns = (pause_ns + own_ns * overhead(context)[rows]) * (1 - 1 / repeats[rows])
    is_first = np.isin(rows, _first_rows(rows, sites.of_row, context.table.named_call))
    is_cell = (context.is_op(_CELLS) & context.kind(schema.CPU))[rows]
    ns = np.where(is_cell, pause_ns * is_first, ns)
    rows, ns = rows[ns > 0], ns[ns > 0]
    most = max(repeats[rows], default=0.0)
    return context.advice(
        f"a Python loop calls small ops, up to {most:,.0f} times"
        f"{' a step' if sites.steps_known else ''} from one line",
        "call each op once on a whole tensor: out = op(torch.stack(parts)), a batch dimension,"
        " torch.vmap, nn.RNN/GRU/LSTM; move out of the loop what does not depend on earlier turns,"
        " or use torch.compile",
        rows,
        wasted_ns=ns,
        min_share=_MIN_LOOP,
    )


def _count_turns(context: RuleContext, sites: Sites) -> Floats:
    """Return how often a step runs the stack of each row: as often as it calls its rarest op."""
    columns = (context.table.own_or_forward(name) for name in ("trace", "layer"))
    stack = number_combinations(*map(number_lists, columns))
    repeats = sites.repeats()
    called = np.flatnonzero(repeats)
    rarest = np.full(int(stack.max(initial=-1)) + 1, np.inf)
    np.minimum.at(rarest, stack[called], repeats[called])
    return np.where(repeats > 0, rarest[stack], 0.0)


def _mark_instrumented(context: RuleContext) -> Mask:
    """Mark rows whose op and line pyprof.init() has marked: it records their modules, too.

    A marker is of a PyTorch function in Python, or of a recurrent module's forward.
    """
    marked = context.call_matches(
        lambda call: call.mod.startswith(("torch", "Tensor")) or call.op == "forward"
    )
    number = number_combinations(context.op.index, context.line.index)
    return np.asarray(np.isin(number, number[marked]))


def _mark_compiled(context: RuleContext) -> Mask:
    """Mark rows whose line and layer also launch kernels that torch.compile generated."""
    names = context.table.records.dictionary("kLongName")
    generated = names.matches(lambda name: INDUCTOR.search(name or "") is not None)
    layers = number_lists(context.table.own_or_forward("layer"))
    number = number_combinations(context.line.index, layers)
    return np.asarray(np.isin(number, number[generated]))


_MIN_GROWTH = 8
"""Calls in a row that each get a larger tensor than the one before."""


@rule(
    "tensors of one size are joined, however often",
    "each call is of another module, as in a dense block",
    "a small part of the time",
    about="loops",
    needs=(OPS,),
)
def growing_cat(context: RuleContext) -> Advice | None:
    """Find ops that join ever larger tensors: each call copies all earlier parts again."""
    rows, ns = _find_growing(context)
    return context.advice(
        "a tensor grows by cat, which copies all of it each time",
        "parts.append(new) in the loop and whole = torch.cat(parts) once after it; or a buffer of"
        " the final size: whole = torch.empty(n, ...); whole[i : i + len(new)] = new",
        rows,
        wasted_ns=ns,
        min_share=MIN_SHARE,
    )


def _find_growing(context: RuleContext) -> tuple[Int64Array, Floats]:
    """Find the calls that join ever larger tensors, and the time each spends on earlier parts.

    The pause before a call does not count: a loop that needs the whole has to append in each turn.
    """
    sites = find_sites(context).of_row
    candidates = np.flatnonzero(
        context.is_op(JOINS) & (sites >= 0) & ~context.is_one("dir", "bprop")
    )
    order = candidates[np.lexsort((context.starts[candidates], sites[candidates]))]
    size, site = context.elements[order], sites[order]
    first = np.append(True, (np.diff(site) != 0) | (np.diff(size) <= 0))[: len(order)]
    run = np.cumsum(first) - 1
    long = (np.bincount(run) >= _MIN_GROWTH)[run]
    new = np.where(first, size, np.diff(size, prepend=0))
    share = 1 - np.minimum(new / np.maximum(size, 1), 1)
    rows, share = order[long], share[long]
    return rows, context.ns[rows] * share


_MAKERS = frozenset(
    {"arange", "ones", "full", "eye", "linspace", "logspace", "tril_indices", "triu_indices",
     "zeros", "range", "hann_window", "hamming_window"}
)  # fmt: skip
_PLAIN = frozenset({"zeros"})
"""Ops that make a buffer to be filled, unless it is turned into a mask."""
_MASKS = frozenset(
    {"tril", "triu", "bool", "to", "float", "half", "long", "int", "masked_fill", "masked_fill_",
     "__invert__", "logical_not", "__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__",
     "repeat", "expand", "cumsum", "tril_", "triu_", "fill_diagonal_", "where"}
)  # fmt: skip
"""Ops that turn a constant into a mask."""
_REPEATED = 3
"""How often the same thing must be made to count as repeated."""
_AFTERWARDS = 12
"""Number of calls, from the one that makes a constant on, that are searched for its uses."""


@rule(
    "its size differs from step to step",
    "random numbers, and buffers of zeros to be filled",
    "another op makes it for itself, as an LSTM its first state",
    "made a few times, as before the loop",
    "a small part of the time",
    about="loops",
    needs=(OPS,),
)
def repeated_constant(context: RuleContext) -> Advice | None:
    """Find constants that are made repeatedly, and the ops that compute from them alone."""
    calls = _calls(context)
    by_key: dict[tuple[Call | None, int], list[list[int]]] = {}
    for index in np.flatnonzero(calls.is_maker).tolist():
        chain = _constant_calls(calls, index)
        call = calls.call.at(index)
        if call is not None and (len(chain) > 1 or call.op not in _PLAIN):
            key = call, int(calls.line[index])
            by_key.setdefault(key, []).append(chain)
    repeated = [chains for chains in by_key.values() if len(chains) >= _REPEATED]
    members = [index for chains in repeated for chain in chains[1:] for index in chain]
    rows = np.flatnonzero(np.isin(calls.of_row, members))
    ns = taken_ns(context)[rows]
    return context.advice(
        "the same constant is made again in each step",
        "make it once: self.register_buffer('mask', torch.ones(n, n).triu(1).bool(),"
        " persistent=False) in __init__ and self.mask[:k, :k] in forward; or before the loop;"
        " functools.lru_cache for a function of sizes",
        rows,
        wasted_ns=ns,
        min_share=MIN_SHARE,
    )


class _Calls(NamedTuple):
    """The forward op calls of each process, in the order of their first rows."""

    call: DictionaryColumn
    """Each call; None if its arguments are unknown."""
    of_row: Int64Array
    """The call of each row; MISSING for rows of no such call."""
    line: IntArray
    function: IntArray
    """Number of the stack around the function that makes the call; MISSING outside functions."""
    is_maker: Mask


def _calls(context: RuleContext) -> _Calls:
    table = context.table
    forward = (
        context.chosen
        & ~context.is_one("dir", "bprop", "optim", "comm", "copy")
        & ~_mark_loading(context)
    )
    rows = np.flatnonzero(forward)
    rows = rows[np.lexsort((context.starts[rows], table.records.numpy("pid")[rows]))]
    first, number = combinations(table.named_call[rows])
    of_row = np.full(table.records.rows, MISSING, np.int64)
    of_row[rows] = number
    rows = rows[first]
    makes = context.is_op(_MAKERS) & context.call_matches(lambda call: not call.tensors)
    trace = table.own_or_forward("trace")
    around = number_lists(trace.map(lambda frames: frames and frames[:-1]))
    in_function = trace.matches(lambda frames: len(frames or ()) > 1)
    return _Calls(
        table.costs.work.take(rows).map(lambda work: work.call),
        of_row,
        context.line.index[rows],
        np.where(in_function, around, MISSING)[rows],
        makes[rows],
    )


def _constant_calls(calls: _Calls, place: int) -> list[int]:
    """Return a constant's call with the calls after it that compute from the constant alone.

    Tensors have no names in a capture: they are recognised by their number of elements, which views
    keep.
    """
    chain: list[int] = []
    sizes: set[int] = set()
    for after in range(place, min(place + _AFTERWARDS, len(calls.call))):
        call = calls.call.at(after)
        if call is None:
            break
        if calls.is_maker[after]:
            made = _elements_of(call)
        else:
            inputs = [each for each in call.tensors if each.shape]
            if not inputs or any(each.numel not in sizes for each in inputs):
                break
            made = _elements_made(call.op, inputs)
        in_function = calls.function[after] == calls.function[place] != MISSING
        if not (calls.line[after] == calls.line[place] or in_function or call.op in _MASKS):
            break
        sizes.add(made)
        chain.append(after)
    return chain


def _elements_of(call: Call) -> int:
    """Return how many elements the arguments of a constant's call state; 0 if unknown."""
    numbers = [n for n in _flatten(call.args) if isinstance(n, int) and not isinstance(n, bool)]
    if call.op == "eye":
        return numbers[0] * numbers[-1] if numbers else 0
    if call.op in ("arange", "range"):
        return len(range(*numbers[:3])) if numbers and 0 not in numbers[2:3] else 0
    return math.prod(numbers[-1:] if call.op.endswith("space") else numbers)


def _elements_made(op: str, inputs: list[Tensor]) -> int:
    """Return how many elements an op makes of its inputs."""
    if op in JOINS or op == "stack":
        return sum(each.numel for each in inputs)
    try:
        shape: tuple[int, ...] = np.broadcast_shapes(*(each.shape for each in inputs))
    except ValueError:  # the inputs of a product
        return 0
    return math.prod(shape)


def _flatten(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        if isinstance(value, tuple):
            yield from _flatten(value)
        else:
            yield value


def _batch(call: Call) -> int:
    """Return the images of a convolution, or the rows of a product; 0 if unknown."""
    first = next(iter(call.tensors), None)
    if first is None or len(first.shape) < 2:  # noqa: PLR2004 - a vector
        return 0
    if call.op.startswith("conv"):
        return first.shape[0]
    return first.numel // max(first.shape[-1], 1) if _may_share_weight(call) else 0


_SMALL_BATCH, _MAJORITY = 8, 0.8
"""At least this share of the products, by number and by time, has at most this batch."""
_TARGET = 64
"""The advised batch, which the gain assumes."""


@rule(
    "the batch is not small, or a step's products are large",
    "no steps are known: a single call has no larger batch",
    "one line calls the ops many times a step, which python_loop reports",
    "on a GPU nothing is trained: who serves waits for no batch",
    about="loops",
    needs=(OPS,),
)
def tiny_batches(context: RuleContext) -> Advice | None:
    """Find steps whose products work on small batches, so that calls cost more than their work."""
    costs = context.table.costs
    rows = np.flatnonzero(context.family(*FAMILIES) & ~context.is_one("dir", "bprop", "optim"))
    if not len(rows) or not (context.cpus or context.is_one("dir", "bprop").any()):
        return None
    batch = context.measure_calls(_batch)[rows]
    size = context.measure_calls(lambda call: next((t.numel for t in call.tensors), 0))[rows]
    small = (size > 0) & ((size <= _FEW_ELEMENTS) | (costs.flops[rows] <= _FEW_FLOPS))
    few = (batch > 0) & (batch <= _SMALL_BATCH) & small
    busy = taken_ns(context)
    by_time = busy[rows[few]].sum() / (busy[rows].sum() or 1)
    sites = find_sites(context)
    if not sites.steps_known or (sites.repeats()[rows] >= _MANY * sites.passes).any():
        return None
    if min(few.mean(), by_time) < _MAJORITY:
        return None
    # calls take a step's time: one with a batch of `_TARGET` would take as long
    typical = float(np.median(batch[few]))
    all_rows = np.flatnonzero(context.chosen & ~_mark_loading(context))
    ns = busy[all_rows] * (1 - typical / _TARGET)
    return context.advice(
        f"each step works on a batch of {typical:.0f}: calls cost more than their work",
        f"larger batches, as DataLoader(data, batch_size={_TARGET}) or x = data[i : i + {_TARGET}];"
        " then fewer steps do the same work (scale the learning rate with the batch)",
        rows,
        context.most(all_rows, ns),
        weight=busy[rows],
        min_share=MIN_SHARE,
    )
