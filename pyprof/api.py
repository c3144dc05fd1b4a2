"""`pyprof.summary`, `.diff`, `.memory`, `.ranks` and `.whatif`: the commands' answers, as objects.

Each takes what its command takes: a capture, several, a folder, a glob or a URL, and returns the
answer that the command's `--json` writes.
"""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click
import pandas as pd

from pyprof.analysis.summary import composition, overview
from pyprof.analysis.whatif import changes_of, summarise_whatif
from pyprof.analysis.whatif.upper_bounds import BOUNDS
from pyprof.answers.base import HTML_VIEWS
from pyprof.answers.summary_answer import Summary
from pyprof.cli.capture_options import Captures
from pyprof.commands.diff import (
    DEFAULT_KEYS,
    are_snapshots,
    compare_captures,
    compare_snapshots,
    parse_keys,
)
from pyprof.commands.memory import analyse
from pyprof.commands.ranks import compare_ranks, with_memory
from pyprof.commands.summary import memory_peak
from pyprof.frame import loaded_paths, paths_of
from pyprof.inputs.executor import open_executor
from pyprof.prof.where import conditions
from pyprof.readers import settings
from pyprof.records.merging import merge_sums
from pyprof.render import notebook

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyprof.answers.diff_answer import Diff
    from pyprof.answers.memory_answer import Memory, MemoryDiff
    from pyprof.answers.ranks_answer import Ranks
    from pyprof.answers.whatif_answer import WhatIf
    from pyprof.frame import Paths
    from pyprof.prof.table import Override

HTML_VIEWS[Summary] = partial(notebook.tables, "summary")


def summary(
    path: Paths,
    override: Override | None = None,
    *,
    steps: str | int | None = None,
    where: str | Iterable[str] = (),
    workers: int = 1,
    graph_captures: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    counters: str | os.PathLike[str] | None = None,
) -> Summary:
    """Return where the time goes, how busy the device is, and potential gains.

    `steps` are those to look at, as for the command: "3:", "3:7", "3". `where` are conditions on
    columns, all of which must hold: "dir=bprop", "eff<20". Further arguments are those of `load`.

    Raises PyprofError if a file cannot be used, ValueError for a condition that cannot be read, or
    for steps that do not exist.
    """
    texts = [where] if isinstance(where, str) else [*where]
    chosen = partial(overview.summarise, chosen=_text(steps), asked=conditions(texts))
    paths = paths_of(path, "summary", override)
    with _opened(paths, workers, graph_captures, counters) as captures:
        sums = captures.map_reduce(chosen, merge_sums, override)
        return composition.summary(sums, memory_peak(captures.paths))


def diff(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    override: Override | None = None,
    *,
    by: str = DEFAULT_KEYS,
    steps: str | int | None = None,
    workers: int = 1,
) -> Diff | MemoryDiff:
    """Compare two captures, or the peaks of two memory snapshots.

    Each may also be a folder, a glob or a URL, for all ranks of a run. `by` names the keys that
    rows are matched by, `steps` the steps of both that are compared. Warnings that the command
    would print are issued as UserWarning.

    Raises PyprofError if a file cannot be used, ValueError for an unknown key, steps that do not
    exist, or either with snapshots.
    """
    try:
        keys = parse_keys(by)
    except click.BadParameter as error:
        raise ValueError(error.message) from None
    paths = [*paths_of(before, "diff"), *paths_of(after, "diff")]
    if are_snapshots(paths):
        if steps is not None or by != DEFAULT_KEYS:
            raise ValueError("of memory snapshots the peaks are compared: without by, steps")
        return compare_snapshots(paths)
    with _opened(paths, workers) as captures:
        answer, warned = compare_captures(captures, keys, _text(steps), override)
    _warn([*warned, *answer.causes])
    return answer


def memory(path: Paths, trace: str | os.PathLike[str] | None = None) -> Memory:
    """Return what filled the memory of each device: the peak, what made it up, growth, OOMs.

    `path` is a snapshot of torch's, a trace with memory events, a capture of nsys or rocprofv3
    with memory usage, or several of them; `trace` the capture of the same run, which adds layers
    and times.

    Raises PyprofError if a file cannot be used or holds no recording of memory.
    """
    return analyse(paths_of(path, "memory"), None if trace is None else os.fspath(trace))


def ranks(path: Paths, *, workers: int = 1) -> Ranks:
    """Compare the ranks of a distributed job: time, stragglers, collectives, layers, memory.

    Warnings that the command would print are issued as UserWarning. Raises PyprofError if a file
    cannot be used.
    """
    with _opened(paths_of(path, "ranks"), workers) as captures:
        job = compare_ranks(captures)
        _warn(job.warnings)
        return with_memory(job, captures.paths)


def whatif(
    path: Paths | pd.DataFrame,
    *,
    dtype: str | None = None,
    fuse: str | Iterable[str] = (),
    batch: str | None = None,
    gpu: str | None = None,
    graphs: bool = False,
    overlap: bool = False,
    fused_optimizer: bool = False,
    workers: int = 1,
) -> WhatIf:
    """Predict kernel time after changes, by default after each that needs no value.

    `path` may also be the frame of `load`. `dtype` is "tf32", "bf16" or "fp16", `fuse` "attention",
    "pointwise" or both, `batch` a factor such as "2x", `gpu` the name of another GPU. For `graphs`,
    `overlap` and `fused_optimizer` the answer is the most that they could gain.

    Raises PyprofError if a file cannot be used, ValueError for a change that no rule has.
    """
    fusions = filter(None, fuse.split(",") if isinstance(fuse, str) else fuse)
    bounds = zip(BOUNDS, (graphs, overlap, fused_optimizer), strict=True)
    asked = changes_of(dtype, fusions, batch, gpu, (option for option, on in bounds if on))
    predict = partial(summarise_whatif, changes=asked)
    if isinstance(path, pd.DataFrame):
        paths = loaded_paths(path, "whatif")
    else:
        paths = paths_of(path, "whatif")
    with _opened(paths, workers) as captures:
        return captures.map_reduce(predict, merge_sums)


@contextmanager
def _opened(
    paths: Sequence[str],
    workers: int,
    graph_captures: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    counters: str | os.PathLike[str] | None = None,
) -> Iterator[Captures]:
    with (
        settings.using_files(graph_captures, counters),
        open_executor(workers, strict=True, quiet=True) as executor,
    ):
        try:
            yield Captures(tuple(paths), executor, quiet=True)
        except click.BadParameter as error:
            raise ValueError(error.message) from None


def _text(steps: str | int | None) -> str | None:
    """Return steps as the command takes them; a number is that step."""
    return None if steps is None else str(steps)


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        warnings.warn(text, stacklevel=3)
