"""The distinct stacks of ranges around kernels, and the ops, tensors and lines that they name.

A frame belongs to a framework if its file is in that framework's installed folder, wherever
packages are installed; the project's own checkout of the same name does not count. (torch.profiler
writes paths relative to where packages are installed.) PyTorch also ships functions that are
algorithms of their own, which a user calls by name and wants to see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof import marker
from pyprof.arrays import MISSING, Int64Array, IntArray, Mask, nearest
from pyprof.marker import Kind, Tensor
from pyprof.parse.autograd.recomputation import ELSEWHERE, HERE
from pyprof.parse.ranges import texts as range_texts
from pyprof.parse.ranges.nesting import by_value
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.marker import Statement, Value
    from pyprof.parse.ranges.texts import Texts
    from pyprof.records.records import Column

_INSTALLED = r"[/\\](?:site-packages|dist-packages)[/\\]"
_FRAMEWORK = re.compile(
    rf"(?:{_INSTALLED}|^)(?:torch|apex|pyprof|functorch|nvtx|triton[/\\](?:runtime|backends))[/\\]"
    r"|<frozen [\w.]+>"
    # code that Inductor wrote: in its own folder, or in any, under the hash that names it
    r"|[/\\]torchinductor_[^/\\]+[/\\]|[/\\](?P<hash>[a-z2-7]{2})[/\\]c(?P=hash)[a-z2-7]{40,}\.py:"
)
_ALGORITHM = re.compile(
    rf"(?:{_INSTALLED}|^)torch[/\\](?:nn[/\\]utils[/\\]|nn[/\\]init\.py|distributions[/\\])"
)
"""Parts of PyTorch whose frames are shown, as if they were the user's."""
_CALLERS = (
    r"(?:asyncio|concurrent|importlib|multiprocessing|unittest)[/\\]"
    r"|(?:contextlib|functools|runpy|threading)\.py:"
)
"""Standard modules of Python that call user code: torch.profiler writes them without a folder."""
_LIBRARY = re.compile(
    rf"{_INSTALLED}|[/\\]lib[/\\]python\d\.\d+t?[/\\]|[/\\]python\d+\.zip[/\\]|<[\w .]+>"
    rf"|^torch[/\\]|(?:^|[/\\]Lib[/\\])(?:{_CALLERS})"
    # code that PyTorch Geometric wrote for a layer: a temporary file named after its module
    r"|[/\\]torch_geometric\.[\w.]+_\w{8}\.py:"
)
"""Frames that are never the line to change: of installed packages, Python and generated code."""


_TRACES = 1 << 18
"""Maximum number of stacks in a cache."""

_INITIALISES = re.compile(r"(?:^|[/\\])torch[/\\]nn[/\\]init\.py:")
_CLIPS = re.compile(r"(?:^|[/\\])torch[/\\]nn[/\\]utils[/\\]clip_grad\.py:")
_OF_OPTIMIZERS = re.compile(
    r"_foreach_(?!copy_)\w+$|_fused_(?:adam|sgd|adagrad)\w*$|_amp_(?:foreach|update_scale)\w*$"
    r"|clip_grad\w+$|get_total_norm$"
)
"""Ops on the parameters or gradients of a whole model: only optimizers and their like call them."""


def outermost_op(path: RangeStack) -> str:
    """The name of the outermost op on this path, without its module; "" if it has none."""
    if path.ops:
        return path.ops[0][1]
    return mod_and_op(path.seqs[0].node)[1] if path.seqs else ""


def initialises(path: RangeStack) -> bool:
    """Whether work on this path fills parameters for the first time."""
    return _has_frame(path.trace, _INITIALISES)


def updates(path: RangeStack) -> bool:
    """Whether work on this path is part of an update of parameters: clips, scales, averages."""
    ops = path.ops or [mod_and_op(said.node) for said in path.seqs]
    named = any(_OF_OPTIMIZERS.match(op) for _, op in ops)
    return named or _has_frame(path.trace, _CLIPS)


@lru_cache(maxsize=2 * _TRACES)
def _has_frame(trace: tuple[str, ...], file: re.Pattern[str]) -> bool:
    return any(map(file.search, trace))


def without_gradients(path: RangeStack) -> bool:
    """Whether PyTorch's ranges show that no backward pass follows: ids without sequence numbers."""
    if path.ops or not path.seqs or any(said.has_seq for said in path.seqs):
        return False
    return path.seqs[-1].has_op_id


def is_framework(frame: str) -> bool:
    """Whether a `file:line` frame is a framework's, and not that of an algorithm in PyTorch."""
    return _FRAMEWORK.search(frame) is not None and _ALGORITHM.search(frame) is None


def user_trace(frames: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out the framework's frames."""
    return tuple(frame for frame in frames if not is_framework(frame))


def user_line(frames: Sequence[str]) -> str | None:
    """The innermost frame outside installed libraries; None if there is none."""
    return next((frame for frame in reversed(frames) if _LIBRARY.search(frame) is None), None)


_PLACE = re.compile(r"(.+):([1-9]\d{0,6})", re.DOTALL | re.ASCII)


def file_and_line(frame: str) -> tuple[str, int] | None:
    """Split `file:line`; None if it is not a valid source line."""
    match = _PLACE.fullmatch(frame)
    return (match[1], int(match[2])) if match else None


# A path is a parent path and one more template; paths are numbered, so that the million kernels
# of a training run share some thousands of them.
@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStack:
    """What the ranges around a kernel state, outermost first."""

    layer: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    """`file:line` of the innermost trace marker, the framework's frames left out."""
    modules: tuple[str, ...] = ()
    """Raw module texts."""
    markers: tuple[Statement, ...] = ()
    """Op markers."""
    ops: tuple[tuple[str, str], ...] = ()
    """(mod, op) of each op marker."""
    seqs: tuple[Statement, ...] = ()
    """PyTorch's own ranges, without their numbers."""
    backward: bool = False
    optimizer: bool = False
    direction_hint: str = ""
    """Direction in the name of the innermost user's range."""
    naming: tuple[Statement, ...] = ()
    """The part of `seqs` that may name the op: for recomputed work, what the node called again."""
    recomputed: bool = False
    """Forward work that the backward pass does again: activation checkpointing."""
    inherited: tuple[bool, bool] = (False, False)
    """In a backward pass, whether layer and trace are only those of the code that called it."""


@dataclass(frozen=True, slots=True)
class RangeStacks:
    """All distinct paths, and the path of each range (itself included)."""

    of_range: IntArray
    parent: Int64Array
    """Always an earlier one."""
    template: Int64Array
    begins: NDArray[np.int8]
    """0, or how it begins to run forward work again; see `recomputation.begins`."""

    def backward(self, texts: Texts) -> Mask:
        """Mask of the paths that belong to the backward pass."""
        begins = range_texts.matching_statements(texts, Kind.SEQ, attrgetter("is_backward"))
        begun = begins[self.template]
        return np.asarray(begun | (nearest(self.parent, begun) != MISSING))

    def find_recomputed(self, texts: Texts, backward: Mask) -> NDArray[np.int8]:
        """Find the paths of forward work that a backward pass runs again; see `recomputation`.

        It begins in a node of checkpointing, in a module that a node calls, or where `begins` is
        set; another node inside ends it.
        """
        starts = np.zeros(len(texts.statements), np.int8)
        starts[texts.kind == Kind.LAYER] = ELSEWHERE
        ends = range_texts.matching_statements(texts, Kind.SEQ, attrgetter("is_backward"))
        checkpoints = range_texts.matching_statements(
            texts, Kind.SEQ, lambda said: said.is_checkpoint and not said.is_engine
        )
        starts[ends & checkpoints] = HERE
        start = np.maximum(self.begins, starts[self.template] * backward)
        is_end = ends[self.template]
        recomputed = np.zeros(len(self.parent), np.int8)
        for way in (ELSEWHERE, HERE):
            begun = start >= way
            around = nearest(self.parent, begun | is_end)
            recomputed[begun | (~is_end & np.append(begun, [False])[around])] = way
        return recomputed

    def describe(
        self, texts: Texts, recomputed: NDArray[np.int8], wanted: Int64Array, most: int
    ) -> list[RangeStack]:
        """Describe some paths; what is nested deeper is limited to the innermost `most` entries.

        `recomputed` is what `find_recomputed` found. All paths that lead to them are walked once,
        however deep: parents that several share are described only if wanted themselves.
        """
        below = self._wanted_children(wanted)
        asked = set(wanted.tolist())
        described: dict[int, RangeStack] = {}
        around = _Around(most)
        left = below.get(MISSING, [])
        while left:
            path = left.pop()
            if path < 0:
                around.leave()
                continue
            template = int(self.template[path])
            kind = Kind(int(texts.kind[template]))
            around.enter(texts.statements[template], kind, recomputed=bool(recomputed[path]))
            if path in asked:
                described[path] = around.path()
            left.append(~path)  # to leave it after all paths below
            left += below.get(path, [])
        return [described[path] for path in wanted.tolist()]

    def _wanted_children(self, wanted: Int64Array) -> dict[int, list[int]]:
        """The children of each path that lead to a wanted path."""
        needed = np.zeros(len(self.parent), bool)
        active = np.unique(wanted)
        while len(active):
            needed[active] = True
            above = np.unique(self.parent[active])
            active = above[above != MISSING]
            active = active[~needed[active]]
        below: dict[int, list[int]] = {}
        rows = np.flatnonzero(needed)
        for path, parent in zip(rows.tolist(), self.parent[rows].tolist(), strict=True):
            below.setdefault(parent, []).append(path)
        return below


def intern(
    parent: IntArray,
    depth: NDArray[np.int32],
    code: NDArray[np.int32],
    begins: NDArray[np.int8] | None = None,
) -> RangeStacks:
    """Number the distinct chains of templates, level by level from the outside in.

    `begins` is what `recomputation.begins` found.
    """
    code = code * np.int32(_WAYS) + (np.int8(0) if begins is None else begins)
    of_range = np.full(len(parent) + 1, MISSING, np.int32)  # the last entry stands for no parent
    parents, templates, count = [], [], 0
    most = int(code.max(initial=0)) + 1
    for _, level in by_value(depth):
        above = of_range.take(parent.take(level), mode="wrap").astype(np.int64)
        pair, number = np.unique((above + 1) * most + code.take(level), return_inverse=True)
        of_range[level] = number + count
        parents.append(pair // most - 1)
        templates.append(pair % most)
        count += len(pair)
    empty = np.zeros(0, np.int64)
    template = np.concatenate([empty, *templates])
    how = (template % _WAYS).astype(np.int8)
    parent_of_path = np.concatenate([empty, *parents])
    return RangeStacks(of_range[:-1], parent_of_path, template // _WAYS, how)


_WAYS = 1 + max(ELSEWHERE, HERE)
"""Number of values of `RangeStacks.begins`."""


class _Around:
    """What is stated by the ranges that a walk has entered and not left."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._layers: list[str] = []
        self._modules: list[str] = []
        self._markers: list[Statement] = []
        self._ops: list[tuple[str, str]] = []
        self._seqs: list[Statement] = []
        self._state = _State()
        self._before: list[tuple[tuple[int, ...], _State]] = []
        self._lists: tuple[list[Any], ...] = (
            *(self._layers, self._modules, self._markers, self._ops, self._seqs),
        )

    def enter(self, said: Statement, kind: Kind, *, recomputed: bool) -> None:
        """Enter a range; `recomputed` if it is forward work that is run again."""
        self._before.append((tuple(map(len, self._lists)), self._state))
        if recomputed != (self._state.recomputed_from is not None):
            outside = (len(self._ops), len(self._seqs)) if recomputed else None
            self._state = self._state._replace(recomputed_from=outside)
        if kind in range_texts.NAMED:
            name = range_texts.name(said.text, kind)
            if kind == Kind.STEP:
                self._state = self._state._replace(step=(name,) if name else ())
            else:
                self._layers.append(name)
            direction_hint = range_texts.direction_hint(name, kind) or self._state.direction_hint
            self._state = self._state._replace(direction_hint=direction_hint)
        elif kind == Kind.TRACE:
            self._state = self._state._replace(trace=_user_trace(said.frames))
        elif kind == Kind.MODULE:
            self._modules.append(said.text)
        elif kind == Kind.OP:
            self._enter_op(said)
        elif kind == Kind.SEQ:
            self._enter_seq(said)
        elif kind == Kind.OPTIMIZER:
            self._state = self._state._replace(optimizer=said.text != marker.CLOSURE)

    def leave(self) -> None:
        """Leave the range that was entered last."""
        lengths, self._state = self._before.pop()
        for listed, length in zip(self._lists, lengths, strict=True):
            del listed[length:]

    def path(self) -> RangeStack:
        """Describe the current path."""
        state = self._state
        layer, modules, markers, ops, seqs = (tuple(x[-self._most :]) for x in self._lists)
        naming, recomputed = seqs, False
        if state.recomputed_from is not None:
            inner_ops, inner_seqs = (
                self._ops[state.recomputed_from[0] :],
                self._seqs[state.recomputed_from[1] :],
            )
            if inner_ops or inner_seqs:
                ops, naming = (tuple(x[-self._most :]) for x in (inner_ops, inner_seqs))
                recomputed = True
        layer = layer or state.step
        same = (len(self._layers) == state.caller_layers, state.trace == state.caller_trace)
        return RangeStack(
            layer=layer,
            trace=state.trace[-self._most :],
            modules=modules,
            markers=markers,
            ops=ops,
            seqs=seqs,
            backward=state.backward,
            optimizer=state.optimizer,
            direction_hint=state.direction_hint,
            naming=naming,
            recomputed=recomputed,
            inherited=same if state.backward else (False, False),
        )

    def _enter_op(self, said: Statement) -> None:
        call = said.call
        if call is None or not said.names_op:
            return
        self._markers.append(said)
        self._ops.append((call.mod, call.op))
        if call.op == "step":
            self._state = self._state._replace(optimizer=True)
        if isinstance(frames := call.kwargs.get(marker.FRAMES), tuple):  # of compiled code
            inside = user_trace(tuple(map(str, frames)))
            self._state = self._state._replace(trace=(*self._state.trace, *inside))

    def _enter_seq(self, said: Statement) -> None:
        if not said.is_checkpoint:
            self._seqs.append(said)
        elif self._state.recomputed_from is not None:
            self._state = self._state._replace(recomputed_from=(len(self._ops), len(self._seqs)))
        if not self._state.backward and said.is_backward:
            self._state = self._state._replace(
                backward=True, caller_layers=len(self._layers), caller_trace=self._state.trace
            )


class _State(NamedTuple):
    """State that an inner range replaces rather than extends."""

    trace: tuple[str, ...] = ()
    backward: bool = False
    optimizer: bool = False
    caller_layers: int = 0
    """Layers around the backward pass that it is in."""
    step: tuple[str, ...] = ()
    """Name of the innermost step around."""
    direction_hint: str = ""
    recomputed_from: tuple[int, int] | None = None
    """Ops, and texts of PyTorch's, around the place where forward work began to be run again."""
    caller_trace: tuple[str, ...] = ()


_user_trace = lru_cache(maxsize=_TRACES)(user_trace)


EMPTY_STACK = RangeStack()
"""The path of a launch outside of all ranges, or on an unknown thread."""

_HOLDERS = re.compile(
    r"(?:^|: )(?:(?:CompiledFunction|torch::jit::.{0,99}?DifferentiableGraph)(?:Backward\d*)?"
    r"|CheckpointFunction)(?:,|$)"
)
"""What torch.compile and TorchScript make of a whole graph, and what is checkpointed: they hold the
ops called in it."""
_TENSORLESS = frozenset({"device", "layout", "memory_format", "Generator"})
"""Types of arguments that are recorded without a value, and hold no tensor."""
_DECORATION = re.compile(r"torch|autograd|_backward|::|jit")
"""What the original cut out of the names of backward nodes."""
_OLD_SUFFIX = re.compile("Backward(?!For_)")
"""Not within `DERIVED`, whose nodes have no number either."""


def ops(named: Sequence[tuple[str, str]], seqs: Sequence[Statement]) -> list[tuple[str, str]]:
    """Name the ops of a path as (mod, op): those of its op markers, else of PyTorch's own ranges.

    In texts of the first PyTorch versions only the backward nodes count, without their suffix:
    this is what the original wrote. From others, every range counts under its own name.
    """
    if named:
        return list(named)
    seqs = [said for said in seqs if not _HOLDERS.search(said.name)] or seqs
    old_nodes = [said for said in seqs if said.is_old_node]
    if old_nodes:
        names = [_DECORATION.sub("", said.name.split(", ", 1)[0]) for said in old_nodes]
        return [("na", _OLD_SUFFIX.split(name)[0]) for name in names]
    nodes = [said for said in seqs if not said.is_engine] or seqs
    return [mod_and_op(said.node) for said in nodes]


def forward_ops(path: RangeStack) -> list[tuple[str, str]]:
    """Name the ops of a forward path as `ops` does; none for a whole graph that was compiled."""
    return [named_op for named_op in ops(path.ops, path.naming) if not _HOLDERS.match(named_op[1])]


def mod_and_op(name: str) -> tuple[str, str]:
    """Split the name of one of PyTorch's own ranges; `na` if it has no module."""
    plain, *template = name.partition("<")
    mod, _, op = plain.rpartition("::")
    return (mod or "na", "".join((op, *template)))


def arguments(path: DictionaryColumn, partner: DictionaryColumn) -> dict[str, Column]:
    """Sizes and dtypes of the input tensors of each row's op, if some text records them.

    From the innermost op text; else from PyTorch's innermost range with sizes, with the forward
    call's dtype; else from the forward call.
    """
    tensors_of = [*map(_tensors, path.values), None]  # a null is the last one
    first, index = combinations(path.index, partner.index)
    chosen = []
    for own, forward in zip(path.index[first].tolist(), partner.index[first].tolist(), strict=True):
        # a marker without a field does not inherit its forward op's
        hidden = path.values[own].markers and tensors_of[own] is None
        chosen.append(None if hidden else _choose(tensors_of[own], tensors_of[forward]))
    known = np.array([tensors is not None for tensors in chosen], bool)
    operands = DictionaryColumn(
        np.where(known[index], index, MISSING), [tensors or [] for tensors in chosen]
    )
    return {
        "sizes": operands.map(lambda tensors: [list(tensor.shape) for tensor in tensors]),
        "dtypes": operands.map(lambda tensors: [tensor.dtype or "" for tensor in tensors]),
    }


def _choose(own: list[Tensor] | None, forward: list[Tensor] | None) -> list[Tensor] | None:
    if not own or not forward:
        return own or forward or own
    dtypes = {tensor.dtype for tensor in forward}
    if len(dtypes) == 1 and all(tensor.dtype is None for tensor in own):
        (dtype,) = dtypes
        return [Tensor(tensor.shape, dtype) for tensor in own]
    return own


def _tensors(path: RangeStack) -> list[Tensor] | None:
    """The tensors of a path's op; [] if it takes none, None if unknown."""
    calls = [call for said in reversed(path.markers) if (call := said.call)]
    calls = [call for call in calls if call.args or call.kwargs]  # others have no arguments
    if calls:
        call = calls[0]
        hides = not call.whole or any(map(_opaque, (*call.args, *call.kwargs.values())))
        return list(call.tensors) or (None if hides else [])  # hidden ones may be tensors
    if path.markers:
        return None  # ranges around it may belong to a larger op
    for said in reversed(path.seqs):
        if said.call and (operands := list(said.call.tensors)):
            return operands
    return None


def _opaque(value: Value) -> bool:
    if isinstance(value, tuple):
        return any(map(_opaque, value))
    if isinstance(value, marker.Opaque):
        return value.type not in _TENSORLESS
    return isinstance(value, marker.Summary)
