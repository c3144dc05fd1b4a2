"""Process groups: their names and ranks, which torch keeps on the host; nobody else is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_RANKS = 32
"""More ranks of a group are written as a range or, where they are none, cut short."""

REFUSALS = (RuntimeError, ValueError, LookupError, AttributeError, TypeError, AssertionError)
"""What is raised where there is no such group, or no longer."""


class Group(NamedTuple):
    """A process group, and what markers say of it."""

    name: str
    ranks: tuple[int, ...]
    text: str


_known: WeakKeyDictionary[Any, Group] = WeakKeyDictionary()
"""Each group is described once, and not kept alive by that."""


def describe(given: Any) -> Group:  # noqa: ANN401 - whatever torch takes
    """Describe the group that an argument stands for. Raises one of REFUSALS."""
    c10d = torch.distributed.distributed_c10d
    group = _resolved(given)
    known = _known.get(group)
    if known is None:
        ranks = tuple(c10d.get_process_group_ranks(group))
        known = _known[group] = Group(group.group_name, ranks, _written(group.group_name, ranks))
    return known


def among(group: Group, peers: Sequence[int]) -> str:
    """Give the text of a call in a group; with peers, of what this rank sends and receives.

    That is among them alone: the others take no part in it, and count their collectives without it.
    """
    if not peers:
        return group.text
    return _written(group.name, tuple(sorted({*peers, torch.distributed.get_rank()})))


def waiting(given: Any) -> Sequence[Any]:  # noqa: ANN401 - as above
    """Give the collectives of a group that torch keeps to run them as one. Raises as `describe`."""
    world: Any = torch.distributed.distributed_c10d._world  # noqa: SLF001 - no public way
    found: Sequence[Any] = world.pg_coalesce_state[_resolved(given)]
    return found


def _resolved(given: Any) -> Any:  # noqa: ANN401 - as above
    """Give a process group, of which functional collectives may be told the name or a mesh."""
    if given is None:
        return torch.distributed.distributed_c10d.GroupMember.WORLD
    if isinstance(given, str):
        by_name: Any = torch._C._distributed_c10d._resolve_process_group  # noqa: SLF001 - no public way
        return by_name(given)
    mesh, *dimension = given if isinstance(given, tuple) else (given,)
    return mesh.get_group(*dimension) if hasattr(mesh, "get_group") else mesh


def _written(name: str, ranks: tuple[int, ...]) -> str:
    return f"'group': {name!r}, 'ranks': {_spelled(ranks)!r}, 'size': {len(ranks)}"


def _spelled(ranks: tuple[int, ...]) -> str:
    """Write ranks as torch.profiler does; many evenly spaced ones as Python's range."""
    if len(ranks) <= MAX_RANKS:
        return str([*ranks])
    even = range(ranks[0], ranks[-1] + 1, max(1, ranks[1] - ranks[0]))
    if tuple(even) == ranks:
        return str(even)
    return f"{str([*ranks[: MAX_RANKS - 1]])[:-1]}, ..., {ranks[-1]}]"
