"""What else differs where time changed: kernel, shape, type, autotuning, GPU, clock."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.diff.keys import MAX_PAIRS, pair_once
from pyprof.analysis.diff.samples import TRAITS, TRIED, trait
from pyprof.prof.table import CPU

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyprof.analysis.diff.side import Key, Side
    from pyprof.answers.diff_answer import Change, Diff

SHAPES = ("shape", "dtype")
"""Keys that may differ where an op of one capture replaces one of the other."""
_MUCH = 0.1
"""Minimum share of an op's time for a kernel, a shape, a type or autotuning to count."""
_NAMED = 2
"""Maximum number of kernels, shapes, types or layers that are named; the rest is counted."""
_MAJORITY, _NEARLY_ALL = 0.5, 0.8
"""Shares of the time."""
_MIN_OPS, _SPREAD, _SPREAD_OF_CHANGE = 5, 0.02, 0.5
"""At least this many ops have one cause if their factors lie together: 80 % of the time within 2 %,
or within half of the change that they have in common."""

_Traits = dict[str, dict[str | None, float]]
"""Time in ns, by trait and its value."""


def with_causes(diff: Diff, a: Side, b: Side) -> Diff:
    """Name what else is different, for each change and for all of them."""
    sides = _traits(a, diff.matched_by), _traits(b, diff.matched_by)
    other = _find_counterparts(diff)
    changes = (
        change
        if change.status == "same"
        else replace(change, causes=tuple(_causes_of_change(change, sides, other)))
        for change in diff.changes
    )
    named = replace(diff, changes=tuple(changes))
    common = dict(_common_traits(named))
    causes = (*_general_causes(named, a, b), *common.values(), *_renamed_layers(named))
    return replace(named, causes=causes, common=tuple(common))


def _traits(side: Side, keys: Sequence[str]) -> Mapping[Key, _Traits]:
    """Total the time of each key by its kernels, shapes and types, and that of autotuning."""
    traits: dict[Key, _Traits] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for row in side.samples.traits.to_pylist():
        of_key = traits[tuple(row[name] for name in keys)]
        for name in () if row[TRIED] else TRAITS:
            of_key[name][row[trait(name)]] += row["ns"]
        of_key[TRIED][str(row[TRIED])] += row["ns"]
    return traits


def _causes_of_change(
    change: Change, sides: tuple[Mapping[Key, _Traits], ...], other: Mapping[int, Change]
) -> Iterator[str]:
    counterpart = other.get(id(change))
    if counterpart is not None:
        yield from _causes_of_pair(change, counterpart, sides)
        return
    if change.status in ("new", "gone"):
        return
    a = sides[0][tuple((change.a_key or change.key).values())]
    b = sides[1][tuple(change.key.values())]
    for name in TRAITS:
        before, after = _main_values(a[name]), _main_values(b[name])
        if before != after and before and after:
            in_a = [value for value in before if value not in after] or before
            in_b = [value for value in after if value not in before] or after
            yield f"different {name}: {_name_first(in_a)} in A, {_name_first(in_b)} in B"
    tried = [traits[TRIED].get("True", 0.0) for traits in (a, b)]
    if bool(tried[0]) != bool(tried[1]) and max(tried) > _MUCH * max(
        sum(traits[TRIED].values()) for traits in (a, b)
    ):
        yield f"autotuning: kernels are tried in {'B' if tried[1] else 'A'} only"


def _main_values(times: Mapping[str | None, float]) -> list[str]:
    """Return the values that each take a large part of the time."""
    least = _MUCH * sum(times.values())
    return sorted(value for value, ns in times.items() if value is not None and ns >= least)


def _name_first(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + more


def _find_counterparts(diff: Diff) -> Mapping[int, Change]:
    """The removed counterpart of each new change, by its `id`, and the other way round."""
    counterparts: dict[int, Change] = {}
    for changes in replaced(diff.changes).values():
        shaped = [change for change in changes if any(change.key.get(name) for name in SHAPES)]
        gone, new = (
            [change for change in shaped if change.status == status] for status in ("gone", "new")
        )
        for one, other in _pair_changes(gone, new):
            counterparts |= {id(one): other, id(other): one}
    return counterparts


def replaced(changes: Iterable[Change]) -> dict[Key, list[Change]]:
    """Group the new and the removed changes by their keys without shape and type."""
    grouped: dict[Key, list[Change]] = defaultdict(list)
    for change in changes:
        if change.status in ("new", "gone"):
            kept = (value for name, value in change.key.items() if name not in SHAPES)
            grouped[tuple(kept)].append(change)
    return grouped


def _pair_changes(gone: Sequence[Change], new: Sequence[Change]) -> Iterator[tuple[Change, Change]]:
    """Pair the changes whose shapes and types have most in common, each once.

    With too many pairs, as if every length of a text has its own shape, there are none.
    """
    if len(gone) * len(new) > MAX_PAIRS:
        return
    alike = [
        (-_count_shared(x.key.values(), y.key.values()), i, j)
        for i, x in enumerate(gone)
        for j, y in enumerate(new)
    ]
    for i, j in pair_once(alike):
        yield gone[i], new[j]


def _count_shared(a: Iterable[str | None], b: Iterable[str | None]) -> int:
    """Count the sizes and words that two keys have in the same places."""
    return sum(
        x == y
        for one, other in zip(a, b, strict=True)
        for x, y in zip(_WORD.findall(one or ""), _WORD.findall(other or ""), strict=False)
    )


_WORD = re.compile(r"\d+|[a-z]\w+")


def _causes_of_pair(
    change: Change, counterpart: Change, sides: tuple[Mapping[Key, _Traits], ...]
) -> Iterator[str]:
    new, gone = (change, counterpart) if change.status == "new" else (counterpart, change)
    for name in SHAPES:
        before, after = (
            _main_values(side[tuple(one.key.values())][name])
            for side, one in zip(sides, (gone, new), strict=True)
        )
        if before != after and before and after:
            yield f"different {name}: {', '.join(before)} in A, {', '.join(after)} in B"


def _general_causes(diff: Diff, a: Side, b: Side) -> Iterator[str]:
    on_a, on_b = (", ".join(sorted(names)) for names in (diff.a_gpus, diff.b_gpus))
    if on_a and on_b and on_a != on_b:
        yield f"different GPUs: A ran on {on_a}, B on {on_b}"
    if "op" in diff.matched_by and a.names_ops != b.names_ops:
        yield (
            f"ops are known in {'A' if a.names_ops else 'B'} only, so that new and gone ones may "
            "be the same work; --by kernel compares kernels"
        )
    clocks = dict(a.clocks), dict(b.clocks)
    for name in sorted(clocks[0].keys() & clocks[1].keys()):
        before, after = clocks[0][name], clocks[1][name]
        if before != after:
            yield (
                f"different clock: {name} runs at up to {before / 1e6:,.0f} MHz in A, "
                f"{after / 1e6:,.0f} MHz in B"
            )
    on_cpu = {*a.gpus, *b.gpus} == {CPU}
    yield from _common_factor(
        diff,
        "other programs, threads or clock"
        if on_cpu
        else "another clock, power limit or temperature",
    )


def _common_factor(diff: Diff, cause: str) -> Iterator[str]:
    """Report if the time of nearly all ops changed by one factor, with the same calls and kernels.

    A step, or a capture without steps, that calls each op twice as often takes twice as long, too.
    """
    steps = diff.per_step
    a_steps, b_steps = (steps.a_count, steps.b_count) if steps else (1, 1)
    same = [
        (change.a_ns, change.b_ns)
        for change in diff.changes
        if change.a_ns and change.b_ns and not change.causes
        if (change.a_calls or 0) * b_steps == (change.b_calls or 0) * a_steps
    ]
    if len(same) < _MIN_OPS:
        return
    before_ns, after_ns = np.array(same).T
    if before_ns.sum() < _NEARLY_ALL * sum(change.a_ns or 0.0 for change in diff.changes):
        return
    ratio = after_ns / before_ns
    order = np.argsort(ratio)
    share = np.cumsum(before_ns[order]) / before_ns.sum()
    low, middle, high = ratio[order][np.searchsorted(share, (0.1, 0.5, 0.9))]
    spread = max(_SPREAD * middle, _SPREAD_OF_CHANGE * abs(middle - 1))
    if abs(middle - 1) > _SPREAD and high - low < spread:
        yield (
            f"nearly all ops take {100 * (middle - 1):+.1f} % by the same kernels: {cause} "
            "(inferred)"
        )


def _common_traits(diff: Diff) -> Iterator[tuple[str, str]]:
    """Yield each trait that differs for most of A's time, with a sentence about it."""
    total_ns = sum(change.a_ns or 0.0 for change in diff.changes)
    for name in TRAITS:
        begin = f"different {name}: "
        causes = [
            (cause.removeprefix(begin), change.a_ns)
            for change in diff.changes
            for cause in change.causes
            if change.a_ns and cause.startswith(begin)
        ]
        share = sum(ns for _, ns in causes) / total_ns if causes else 0.0
        if share > _MAJORITY and len(causes) >= _MIN_OPS:
            what = _describe_common(name, causes)
            yield name, f"different {name}s for {100 * share:.0f} % of A's time{what}"


def _describe_common(name: str, causes: Sequence[tuple[str, float]]) -> str:
    """Name the types, or the size in shapes, such as that of a batch, that differ in nearly all."""
    if name == "kernel":
        return ": another library version, setting or GPU (inferred)"
    if name == "dtype":
        text = _find_common_text(causes)
        return f": {text}" if text else ""
    sizes = [
        (f"{x} in A, {y} in B", ns)
        for cause, ns in causes
        for x, y in {*zip(*map(_NUMBER.findall, cause.split(" in A, ", 1)), strict=False)}
        if x != y
    ]
    text = _find_common_text(sizes, sum(ns for _, ns in causes))
    return f": {text}, as with another batch size or length (inferred)" if text else ""


_NUMBER = re.compile(r"[0-9]+")


def _find_common_text(texts: Sequence[tuple[str, float]], total_ns: float | None = None) -> str:
    """Return the text that holds for nearly all the time; "" if there is none."""
    ns_by_text: dict[str, float] = defaultdict(float)
    for text, ns in texts:
        ns_by_text[text] += ns
    most = max(ns_by_text, key=lambda text: ns_by_text[text], default="")
    whole_ns = sum(ns_by_text.values()) if total_ns is None else total_ns
    return most if most and ns_by_text[most] >= _NEARLY_ALL * whole_ns else ""


def _renamed_layers(diff: Diff) -> Iterator[str]:
    names = {
        (change.a_key["layer"], change.key["layer"]): None
        for change in diff.changes
        if change.a_key is not None
    }
    if names:
        shown = _name_first([f"{a or 'none'} in A is {b or 'none'} in B" for a, b in names])
        yield f"layers with different names have the same ops: {shown} (inferred)"
