"""Captures whose ops take a given time in each step."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tests.analysis.captured import op
from tests.builders import Range, Work, nsys_db

OPS = ("relu", "gelu", "exp")


def times(seed: int, steps: int, spread: float, **factors: float) -> dict[str, list[int]]:
    """Return what each op takes in each step, ns: 100, 200 and 300 us, by a factor, with noise."""
    rng = np.random.default_rng(seed)
    return {
        name: np.rint(
            1e5 * number * factors.get(name, 1.0) * (1 + spread * rng.standard_normal(steps))
        ).astype(int).tolist()
        for number, name in enumerate(OPS, 1)
    }  # fmt: skip


def noisy(
    path: Path,
    taken: Mapping[str, Sequence[int]],
    kernels: Mapping[str, str] | None = None,
    sizes: Mapping[str, tuple[int, ...]] | None = None,
) -> Path:
    """Write a capture of one step after the other; each op runs one kernel in each."""
    work, ranges = [], []
    steps = len(next(iter(taken.values())))
    at = 0
    for step in range(steps):
        start = at = at + 5000
        for place, (name, ns) in enumerate(taken.items()):
            called = start + 100 * place
            shape = (sizes or {}).get(name, (64, 64))
            ranges.append(Range(op(name, *shape), (called, called + 50)))
            kernel = (kernels or {}).get(name, f"{name}_kernel")
            work.append(Work(kernel, (at + 5000, at + 5000 + ns[step]), (called + 10, called + 20)))
            at += 5000 + ns[step]
        ranges.append(Range(f"step {step}", (start, at)))
    return nsys_db(path, work, ranges)
