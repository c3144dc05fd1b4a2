"""What else differs where time changed: kernel, shape, type, autotuning, GPU, clock."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.diff.compare import NEW, REMOVED, SAME, SHAPES
from pyprof.analysis.diff.keys import MAX_PAIRS, pair_once
from pyprof.analysis.diff.samples import TRAITS, TRIED, trait
from pyprof.prof.table import CPU

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.analysis.diff.compare import Change, Comparison
    from pyprof.analysis.diff.side import Key, Side

_MUCH = 0.1
"""Minimum share of an op's time for a kernel, a shape, a type or autotuning to count."""
_NAMED = 2
"""Maximum number of kernels, shapes, types or layers that are named; the rest is counted."""
_MAJORITY, _NEARLY_ALL = 0.5, 0.8
"""Shares of the time."""
_SPREAD, _SPREAD_OF_CHANGE = 0.02, 0.5
_MIN_OPS = 5
"""At least this many ops, whose factors differ by less than the spread, have one cause."""

_Traits = dict[str, dict[str | None, float]]
"""Time in ns, by trait and its value."""


def with_causes(comparison: Comparison, a: Side, b: Side) -> Comparison:
    """Name what else is different, for each change and for all of them."""
    sides = _traits(a, comparison.keys), _traits(b, comparison.keys)
    other = _others(comparison)
    changes = [
        change
        if change.status == SAME
        else replace(change, causes=tuple(_of_change(change, sides, other)))
        for change in comparison.changes
    ]
    named = replace(comparison, changes=changes)
    common = dict(_common(named))
    causes = (*_of_all(named, a, b), *common.values(), *_renamed_layers(named))
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


def _of_change(
    change: Change, sides: tuple[Mapping[Key, _Traits], ...], other: Mapping[int, Change]
) -> Iterator[str]:
    counterpart = other.get(id(change))
    if counterpart is not None:
        yield from _reshaped(change, counterpart, sides)
        return
    if change.status in (NEW, REMOVED):
        return
    a, b = sides[0][change.a_key or change.key], sides[1][change.key]
    for name in TRAITS:
        before, after = _main(a[name]), _main(b[name])
        if before != after and before and after:
            yield f"other {name}: {_spelt(before, after)} in A, {_spelt(after, before)} in B"
    tried = [traits[TRIED].get("True", 0.0) for traits in (a, b)]
    if bool(tried[0]) != bool(tried[1]) and max(tried) > _MUCH * max(
        sum(traits[TRIED].values()) for traits in (a, b)
    ):
        yield f"autotuning: kernels are tried in {'B' if tried[1] else 'A'} only"


def _main(times: Mapping[str | None, float]) -> list[str]:
    """The values with much of the time."""
    least = _MUCH * sum(times.values())
    return sorted(value for value, ns in times.items() if value is not None and ns >= least)


def _spelt(values: Sequence[str], than: Sequence[str]) -> str:
    """Name the values that `than` lacks; all of them if it lacks none."""
    own = [value for value in values if value not in than] or [*values]
    more = f" and {len(own) - _NAMED} more" if len(own) > _NAMED else ""
    return ", ".join(own[:_NAMED]) + more


def _others(comparison: Comparison) -> Mapping[int, Change]:
    """The removed counterpart of each new change, by its `id`, and the other way round."""
    indices = [at for at, name in enumerate(comparison.keys) if name in SHAPES]
    counterparts: dict[int, Change] = {}
    for changes in comparison.replaced.values():
        shaped = [change for change in changes if any(change.key[at] for at in indices)]
        gone, new = (
            [change for change in shaped if change.status == status] for status in (REMOVED, NEW)
        )
        for one, other in _pairs(gone, new):
            counterparts |= {id(one): other, id(other): one}
    return counterparts


def _pairs(gone: Sequence[Change], new: Sequence[Change]) -> Iterator[tuple[Change, Change]]:
    """Pair those whose shapes and types have most in common, each once.

    With too many pairs, as with a shape for each length of a text, none is matched to another.
    """
    if len(gone) * len(new) > MAX_PAIRS:
        return
    alike = [(-_shared(x.key, y.key), i, j) for i, x in enumerate(gone) for j, y in enumerate(new)]
    for i, j in pair_once(alike):
        yield gone[i], new[j]


def _shared(a: Key, b: Key) -> int:
    """Count the sizes and words that two keys have in the same places."""
    return sum(
        x == y
        for one, other in zip(a, b, strict=True)
        for x, y in zip(_WORD.findall(one or ""), _WORD.findall(other or ""), strict=False)
    )


_WORD = re.compile(r"\d+|[a-z]\w+")


def _reshaped(
    change: Change, counterpart: Change, sides: tuple[Mapping[Key, _Traits], ...]
) -> Iterator[str]:
    new, gone = (change, counterpart) if change.status == NEW else (counterpart, change)
    for name in SHAPES:
        before, after = _main(sides[0][gone.key][name]), _main(sides[1][new.key][name])
        if before != after:
            yield f"other {name}: {', '.join(before)} in A, {', '.join(after)} in B"


def _of_all(comparison: Comparison, a: Side, b: Side) -> Iterator[str]:
    if comparison.devices:
        yield comparison.devices
    clocks = dict(a.clocks), dict(b.clocks)
    for name in sorted(clocks[0].keys() & clocks[1].keys()):
        before, after = clocks[0][name], clocks[1][name]
        if before != after:
            yield (
                f"other clock: {name} runs at up to {before / 1e6:,.0f} MHz in A, "
                f"{after / 1e6:,.0f} MHz in B"
            )
    on_cpu = {*a.gpus, *b.gpus} == {CPU}
    yield from _common_factor(
        comparison,
        "other programs, threads or clock"
        if on_cpu
        else "another clock, power limit or temperature",
    )


def _common_factor(comparison: Comparison, cause: str) -> Iterator[str]:
    """Report if the time of nearly all ops changed by one factor, with the same kernels."""
    same = [
        change for change in comparison.changes if change.a_ns and change.b_ns and not change.causes
    ]
    if len(same) < _MIN_OPS:
        return
    ratio = np.array([change.b_ns / change.a_ns for change in same])
    weight = np.array([change.a_ns for change in same])
    order = np.argsort(ratio)
    share = np.cumsum(weight[order]) / weight.sum()
    low, middle, high = ratio[order][np.searchsorted(share, (0.1, 0.5, 0.9))]
    spread = max(_SPREAD * middle, _SPREAD_OF_CHANGE * abs(middle - 1))
    if abs(middle - 1) > _SPREAD and high - low < spread:
        yield (
            f"nearly all ops take {100 * (middle - 1):+.1f} % by the same kernels: {cause} "
            "(inferred)"
        )


def _common(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield each trait that differs for most of A's time, with a sentence about it."""
    total_ns = sum(change.a_ns for change in comparison.changes)
    for name in TRAITS:
        begin = f"other {name}: "
        causes = [
            (cause.removeprefix(begin), change.a_ns)
            for change in comparison.changes
            for cause in change.causes
            if change.a_ns and cause.startswith(begin)
        ]
        share = sum(ns for _, ns in causes) / total_ns if causes else 0.0
        if share > _MAJORITY and len(causes) >= _MIN_OPS:
            what = _in_common(name, causes)
            yield name, f"other {name}s for {100 * share:.0f} % of A's time{what}"


def _in_common(name: str, causes: Sequence[tuple[str, float]]) -> str:
    """Name the types, or the size in shapes, such as that of a batch, that differ in nearly all."""
    if name == "kernel":
        return ": another library version, setting or GPU (inferred)"
    if name == "dtype":
        text = _for_nearly_all(causes)
        return f": {text}" if text else ""
    sizes = [
        (f"{x} in A, {y} in B", ns)
        for cause, ns in causes
        for x, y in {*zip(*map(_NUMBER.findall, cause.split(" in A, ", 1)), strict=False)}
        if x != y
    ]
    text = _for_nearly_all(sizes, sum(ns for _, ns in causes))
    return f": {text}, as of another batch size or length (inferred)" if text else ""


_NUMBER = re.compile(r"[0-9]+")


def _for_nearly_all(texts: Sequence[tuple[str, float]], total_ns: float | None = None) -> str:
    """Return the text that holds for nearly all the time; "" if there is none."""
    ns_by_text: dict[str, float] = defaultdict(float)
    for text, ns in texts:
        ns_by_text[text] += ns
    most = max(ns_by_text, key=lambda text: ns_by_text[text], default="")
    whole_ns = sum(ns_by_text.values()) if total_ns is None else total_ns
    return most if most and ns_by_text[most] >= _NEARLY_ALL * whole_ns else ""


def _renamed_layers(comparison: Comparison) -> Iterator[str]:
    if "layer" not in comparison.keys:
        return
    at = comparison.keys.index("layer")
    names = {
        (change.a_key[at], change.key[at]): None
        for change in comparison.changes
        if change.a_key is not None
    }
    if names:
        shown = ", ".join(f"{a or 'none'} in A is {b or 'none'} in B" for a, b in [*names][:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"layers of other names have the same ops: {shown}{more} (inferred)"
