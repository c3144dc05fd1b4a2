"""What each process group is for: tensor, pipeline, data, expert or context parallelism.

The role is taken from its description or name (Megatron, torch's device meshes, DeepSpeed, vLLM),
else from its traffic or its place among the other groups, if these leave no doubt. Otherwise a
group has no role: a guess would be taken for a fact.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.answers.ranks_answer import UNEVEN, AxisUse
from pyprof.ops.torch.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    ONE_WAY,
    REDUCE_SCATTER,
    SEND_RECV,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyprof.analysis.ranks.match import CollectiveMatrix, Group
    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.arrays import IntArray

TENSOR, PIPELINE, DATA, EXPERT, CONTEXT = "TP", "PP", "DP", "EP", "CP"

_WORDS: tuple[tuple[str, frozenset[str]], ...] = (
    # The first that a name holds counts: `expert_data_parallel` reduces gradients of experts.
    (DATA, frozenset({"dp", "data", "edp", "fsdp", "hsdp", "ddp", "replicate", "shard"})),
    (EXPERT, frozenset({"ep", "expert", "experts", "moe"})),
    (TENSOR, frozenset({"tp", "tensor"})),
    (PIPELINE, frozenset({"pp", "pipe", "pipeline"})),
    (CONTEXT, frozenset({"cp", "context", "sequence", "sp", "ulysses", "ring"})),
)
_WORD = re.compile(r"[a-z]+")
_BESIDES = frozenset({BARRIER, ONE_WAY})
"""What groups of any role do now and then."""

BY_DESCRIPTION, BY_NAME, BY_TRAFFIC, BY_LAYOUT = "description", "name", "traffic", "layout"


@dataclass(frozen=True, slots=True)
class Role:
    """What a group is for, and the evidence; both empty if unknown."""

    name: str = ""
    evidence: str = ""


def group_role(description: str | None, name: str | None, kinds: Collection[str | None]) -> Role:
    """Return the role of a group by its description, its name or its traffic."""
    for text, evidence in ((description, BY_DESCRIPTION), (name, BY_NAME)):
        words = {*_WORD.findall((text or "").lower())}
        for role, names in _WORDS:
            if words & names:
                return Role(role, evidence)
    if {*kinds} - _BESIDES == {SEND_RECV}:
        return Role(PIPELINE, BY_TRAFFIC)
    return Role()


def axes(columns: Collectives, matrices: Sequence[CollectiveMatrix]) -> list[AxisUse]:
    """Total the groups of each role; the one with most exposed communication first."""
    entries = [np.unique(columns.signature[matrix.rows[matrix.rows >= 0]]) for matrix in matrices]
    what = columns.signatures
    roles = []
    for matrix, used in zip(matrices, entries, strict=True):
        described = {what.description.at(entry) for entry in used} - {None}
        description = described.pop() if len(described) == 1 else None
        name = matrix.group.name if matrix.group.named else None
        roles.append(group_role(description, name, {what.kind.at(entry) for entry in used}))
    # only collectives that tensor and data parallelism use
    reduces = what.kind.is_in(ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, *_BESIDES)
    if not any(role.name for role in roles) and all(reduces[used].all() for used in entries):
        roles = _infer_by_layout([matrix.group for matrix in matrices]) or roles
    alike: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for index, (role, matrix) in enumerate(zip(roles, matrices, strict=True)):
        alike[role.name, role.evidence, len(matrix.group.ranks)].append(index)
    role_axes = [
        _axis(columns, *key, [matrices[index] for index in places],
              np.unique(np.concatenate([entries[index] for index in places])))
        for key, places in alike.items()
    ]  # fmt: skip
    return sorted(role_axes, key=lambda axis: (-axis.exposed_ns, axis.role, axis.ranks))


def _axis(
    columns: Collectives,
    role: str,
    evidence: str,
    size: int,
    matrices: Sequence[CollectiveMatrix],
    entries: IntArray,
) -> AxisUse:
    what = columns.signatures
    ranks = len(np.unique(what.rank[entries]))
    calls = sum(int((matrix.rows >= 0).sum()) for matrix in matrices)
    busiest, imbalance = _imbalance(columns, entries) if role == EXPERT else (None, None)
    return AxisUse(
        role, evidence, len(matrices), size, round(calls / ranks),
        int(what.total_ns[entries].sum()) / ranks, int(what.exposed_ns[entries].sum()) / ranks,
        busiest, imbalance, (imbalance or 0) > UNEVEN,
    )  # fmt: skip


def _imbalance(columns: Collectives, entries: IntArray) -> tuple[int | None, float | None]:
    """The rank that receives most in all-to-alls, and its ratio to the mean."""
    what = columns.signatures
    exchanged = entries[what.kind.is_in(ALL_TO_ALL)[entries]]
    received = what.received_bytes[exchanged]
    if not len(exchanged) or (received < 0).any():
        return None, None
    ranks, index = np.unique(what.rank[exchanged], return_inverse=True)
    total = np.bincount(index, weights=received)
    if len(ranks) < 2 or not total.sum():  # noqa: PLR2004 - nothing to compare
        return None, None
    most = int(total.argmax())
    return int(ranks[most]), float(total[most] / total.mean())


def _infer_by_layout(groups: Sequence[Group]) -> list[Role]:
    """Infer roles of groups that cross: neighbours are tensor parallel, others data parallel.

    All launchers place ranks like that, since neighbours have the fastest links. Empty unless there
    are exactly these two kinds, each with every rank once.
    """
    neighbours = [bool((np.diff(group.ranks) == 1).all()) for group in groups]
    near = [group for group, is_near in zip(groups, neighbours, strict=True) if is_near]
    far = [group for group, is_near in zip(groups, neighbours, strict=True) if not is_near]
    if not (near and far and _partition(near) == _partition(far) is not None):
        return []
    return [Role(TENSOR if is_near else DATA, BY_LAYOUT) for is_near in neighbours]


def _partition(groups: Sequence[Group]) -> frozenset[int] | None:
    """The ranks of groups of equal size that hold each rank once; None for any others."""
    ranks = [rank for group in groups for rank in group.ranks.tolist()]
    even = len({len(group.ranks) for group in groups}) == 1
    return frozenset(ranks) if even and len(ranks) == len({*ranks}) else None


def in_pipeline(described: Mapping[str, Sequence[Any]]) -> list[bool]:
    """Mask of the kinds of collectives of a rank that join the stages of a pipeline.

    `described` has the columns `group`, `description`, `stream` and `kind`; the kinds of one group
    have one role.
    """
    groups, streams = described["group"], described["stream"]
    rows_of: dict[object, list[int]] = defaultdict(list)
    for row, (group, stream) in enumerate(zip(groups, streams, strict=True)):
        rows_of[("stream", stream) if group is None else group].append(row)
    mask = [False] * len(groups)
    for rows in rows_of.values():
        descriptions = (described["description"][row] for row in rows)
        description = next((str(text) for text in descriptions if text is not None), None)
        name = groups[rows[0]]
        kinds = {described["kind"][row] for row in rows}
        role = group_role(description, None if name is None else str(name), kinds)
        for row in rows:
            mask[row] = role.name == PIPELINE
    return mask
