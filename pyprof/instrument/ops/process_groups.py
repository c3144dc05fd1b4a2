"""Collectives in markers: their process group, and how much each rank sends and receives.

Names and ranks come from torch on this host: nothing is communicated or waited for. The keys are
those of `schema.COLLECTIVE`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import torch

from pyprof.instrument.ops.payload import dtype_name, op_head, op_text
from pyprof.marker import DDP

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel

MAX_RANKS = 32
"""Longer lists of ranks are written as a range or, if they are not one, truncated."""

REFUSALS = (RuntimeError, ValueError, LookupError, AttributeError, TypeError, AssertionError)
"""Raised if there is no such group, or no longer."""


class DescribedGroup(NamedTuple):
    """A process group, and its text in markers."""

    name: str
    ranks: tuple[int, ...]
    text: str


_described: WeakKeyDictionary[Any, DescribedGroup] = WeakKeyDictionary()
"""Each group is described once, without keeping it alive."""


def describe(group_argument: Any) -> DescribedGroup:  # noqa: ANN401 - whatever torch takes
    """Describe the group that an argument stands for. Raises one of REFUSALS."""
    c10d = torch.distributed.distributed_c10d
    group = _resolve(group_argument)
    known = _described.get(group)
    if known is None:
        ranks = tuple(c10d.get_process_group_ranks(group))
        described = str(getattr(group, "group_desc", ""))  # torch 2.4 and newer
        text = _write_group(group.group_name, ranks, "" if described in _UNSAID else described)
        known = _described[group] = DescribedGroup(group.group_name, ranks, text)
    return known


_UNSAID = frozenset({"", "undefined", "default_pg"})
"""torch's placeholders for groups without a description."""


def call_text(group: DescribedGroup, peers: Sequence[int]) -> str:
    """Return the text of a call in a group; with peers, that of a send or receive.

    Only the peers take part in it: the other ranks count their collectives without it.
    """
    if not peers:
        return group.text
    return _write_group(group.name, tuple(sorted({*peers, torch.distributed.get_rank()})))


def _resolve(group_argument: Any) -> Any:  # noqa: ANN401 - as above
    """Resolve a process group; functional collectives may get its name, or a mesh."""
    if group_argument is None:
        return torch.distributed.distributed_c10d.GroupMember.WORLD
    if isinstance(group_argument, str):
        by_name: Any = torch._C._distributed_c10d._resolve_process_group  # noqa: SLF001 - no public way
        return by_name(group_argument)
    mesh, *dimension = group_argument if isinstance(group_argument, tuple) else (group_argument,)
    return mesh.get_group(*dimension) if hasattr(mesh, "get_group") else mesh


def _write_group(name: str, ranks: tuple[int, ...], description: str = "") -> str:
    described = f", 'description': {description!r}" if description else ""
    return f"'group': {name!r}{described}, 'ranks': {_spell_ranks(ranks)!r}, 'size': {len(ranks)}"


def _spell_ranks(ranks: tuple[int, ...]) -> str:
    """Write ranks as torch.profiler does; many evenly spaced ones as Python's range."""
    if len(ranks) <= MAX_RANKS:
        return str([*ranks])
    even = range(ranks[0], ranks[-1] + 1, max(1, ranks[1] - ranks[0]))
    if tuple(even) == ranks:
        return str(even)
    return f"{str([*ranks[: MAX_RANKS - 1]])[:-1]}, ..., {ranks[-1]}]"


HOME, FUNCTIONAL_HOME = "torch.distributed", "torch.distributed._functional_collectives"
"""Homes of collectives, as markers name them."""

Text: TypeAlias = Callable[[str, Sequence[Any], Mapping[str, Any]], str]
_Counts: TypeAlias = "tuple[int | None, int | None]"
_Rule: TypeAlias = Callable[[int, int, int], _Counts]


_HOME: Mapping[str, _Rule] = {
    """
    all_reduce all_reduce_coalesced broadcast irecv isend recv reduce send
    """: lambda x, _, __: (x, x),
    """
    _all_gather_base _reduce_scatter_base all_gather all_gather_coalesced all_gather_into_tensor
    all_gather_single all_to_all all_to_all_single reduce_scatter reduce_scatter_single
    reduce_scatter_tensor
    """: lambda x, y, _: (y, x),  # the output comes first
    "gather gather_into_tensor gather_single": lambda x, _, n: (x, x * n),
    "scatter": lambda x, _, n: (x * n, x),
}
_FUNCTIONAL: Mapping[str, _Rule] = {
    "all_reduce all_reduce_coalesced broadcast": lambda x, _, __: (x, x),
    """
    all_gather_into_tensor_coalesced all_gather_single all_gather_single_autograd
    all_gather_single_coalesced all_gather_tensor all_gather_tensor_autograd
    """: lambda x, _, n: (x, x * n),
    """
    reduce_scatter_single reduce_scatter_single_autograd reduce_scatter_single_coalesced
    reduce_scatter_tensor reduce_scatter_tensor_autograd reduce_scatter_tensor_coalesced
    """: lambda x, _, n: (x, x // n),
    "all_to_all_single all_to_all_single_autograd": lambda x, _, __: (x, None),
}
_BATCH, _BARRIER = "batch_isend_irecv", "barrier"
_RULES: Mapping[str, Mapping[str, _Rule]] = {
    home: {name: rule for names, rule in rules.items() for name in names.split()}
    for home, rules in ((HOME, _HOME), (FUNCTIONAL_HOME, _FUNCTIONAL))
}
"""How many elements a rank sends and receives, from those of the first two arguments and the size
of the group: as torch counts them for its own traces (ProcessGroupNCCL.cpp)."""

_PEER = {
    **dict.fromkeys(("isend", "send"), ("dst", "group_dst")),
    **dict.fromkeys(("irecv", "recv"), ("src", "group_src")),
}
"""Arguments that name the peer: its rank, or its position in the group."""

NAMES: Mapping[str, frozenset[str]] = {
    HOME: frozenset({*_RULES[HOME], _BATCH, _BARRIER}),
    FUNCTIONAL_HOME: frozenset(_RULES[FUNCTIONAL_HOME]),
}
"""The collectives of each home."""


def text_of(function: Callable[..., Any], mod: str, name: str) -> Text:
    """Return the function that writes a function's markers; collectives have their own."""
    if name not in NAMES.get(mod, ()):
        return op_text
    if name == _BATCH:
        return _batch_text
    names = tuple(inspect.signature(function).parameters)
    index, rule = names.index("group"), _RULES[mod].get(name)

    def text(head: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        plain = op_text(head, args, kwargs)
        try:
            group = describe(args[index] if len(args) > index else kwargs.get("group"))
            arguments = {**dict(zip(names, args, strict=False)), **kwargs}
            tensors = [arguments.get(name) for name in names[:2]] if rule else []
            return _add_collective(plain, _collective_text(name, group, rule, tensors, arguments))
        except REFUSALS:
            return plain

    return text


def forget() -> None:
    """Clear the cache."""
    _modules.clear()


def _add_collective(plain: str, collective_text: str) -> str:
    return f"{plain[:-1]}, 'collective': {{{collective_text}}}}}"


def _collective_text(
    op: str,
    group: DescribedGroup,
    rule: _Rule | None,
    values: Sequence[object],
    arguments: Mapping[str, Any],
) -> str:
    """Describe a collective; its first two arguments may be tensors, or lists of them."""
    if rule is None:
        return group.text
    with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - else tensors' own code would run
        first, second = ([*_tensors(value)] for value in values)
        counts = rule(_elements(first), _elements(second), len(group.ranks))
        amounts = _amounts([*first, *second], *counts)
    peer, index = (arguments.get(name) for name in _PEER.get(op, ("", "")))
    if index is not None:
        peer = group.ranks[index]
    return call_text(group, [] if peer is None else [peer]) + amounts


def _batch_text(head: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    plain = op_text(head, args, kwargs)
    try:
        (batch,) = (*args, *kwargs.values())
        sent, got = ([e.tensor for e in batch if e.op.__name__ == op] for op in ("isend", "irecv"))
        among = call_text(describe(batch[0].group), [each.peer for each in batch])
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - as above
            amounts = _amounts([*sent, *got], _elements(sent), _elements(got))
    except REFUSALS:
        return plain
    return _add_collective(plain, among + amounts)


def coalesced_text(group: object) -> str:
    """Return the marker of a group's queued collectives; "" if none are queued."""
    try:
        described = describe(group)
        world: Any = torch.distributed.distributed_c10d._world  # noqa: SLF001 - no public way
        waiting = world.pg_coalesce_state[_resolve(group)]
        op = f"{waiting[0].op.__name__}_coalesced"
        inputs = [each.tensor for each in waiting]
        outputs = [each.dst_tensor for each in waiting if each.dst_tensor is not None]
        values = [outputs, inputs] if outputs else [inputs]
        rule = _RULES[HOME]["all_gather" if outputs else "all_reduce"]
        collective_text = _collective_text(op, described, rule, [*values, None][:2], {})
    except REFUSALS:  # none queued, or torch's internals differ
        return ""
    return _add_collective(op_text(op_head(HOME, op), values, {}), collective_text)


def ddp_text(module: DistributedDataParallel) -> str:
    """Return the marker of a module whose gradients are reduced in C++, unseen by wrappers.

    "" if its process group is unknown. The dtype is left out if a communication hook may change it.
    """
    if (cached := _modules.get(module)) is not None:
        return cached
    try:
        group_text = describe(module.process_group).text
    except REFUSALS:
        return ""
    dtypes = {each.dtype for each in module.parameters() if each.requires_grad}
    changed = any(getattr(module, name, None) for name in ("mixed_precision", "_comm_hooks"))
    if len(dtypes) == 1 and not changed:
        group_text += f", 'dtype': {dtype_name(dtypes.pop())!r}"
    marker_text = _modules[module] = _add_collective(f"{op_head(*DDP)}]}}", group_text)
    return marker_text


_modules: WeakKeyDictionary[DistributedDataParallel, str] = WeakKeyDictionary()


def _tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield a tensor, or those in a list, at any depth."""
    if issubclass(type(value), torch.Tensor):
        yield value  # type: ignore[misc] # not isinstance, as `__class__` may lie
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _elements(tensors: Sequence[torch.Tensor]) -> int:
    return sum(tensor.numel() for tensor in tensors)


def _amounts(tensors: Sequence[torch.Tensor], sent: int | None, received: int | None) -> str:
    """Write the elements sent and received and their dtype, if there is only one."""
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) != 1:
        return ""
    counts = {"in": sent, "out": received}
    texts = [f", {key!r}: {count}" for key, count in counts.items() if type(count) is int]
    return f", 'dtype': {dtype_name(dtypes.pop())!r}{''.join(texts)}"
