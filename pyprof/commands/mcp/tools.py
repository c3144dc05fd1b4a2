"""The tools: each returns the JSON of a command, bounded.

They read the files that the caller names, and nothing else; none writes. The last runs a script.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from pyprof.commands.mcp.access import allowed, captures, several
from pyprof.commands.mcp.bounds import MAX_LIMIT, Answer, bound, check_limit
from pyprof.commands.mcp.parameters import (  # noqa: TC001 - the server evaluates annotations
    File,
    Files,
    Gpu,
    Limit,
    Steps,
    Where,
)
from pyprof.errors import PyprofError, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.prof.table import Override
    from pyprof.prof.where import Condition

_LIMIT = 20
_FIRST = 12
"""Entries of a summary's lists: what an agent reads first stays below 20 kB."""
_ONE_AT_A_TIME = threading.Lock()
"""Captures are large: two at once might not fit into memory."""


class ToolUseError(Exception):
    """An error that the caller can fix, in one line."""


def tool(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Make a tool, whose docstring an agent reads: errors of the caller become ToolUseError."""

    @wraps(function)
    def guarded(**given: Any) -> Answer:  # noqa: ANN401 - the tool's own
        with _ONE_AT_A_TIME:
            try:
                return function(**given)
            except click.ClickException as error:
                raise ToolUseError(error.format_message()) from None
            except (PyprofError, ValueError) as error:
                raise ToolUseError(str(error)) from None
            except OSError as error:
                raise ToolUseError(refused(error) or str(error.strerror or error)) from None
            except MemoryError:
                raise ToolUseError("not enough memory for this capture") from None

    return guarded


@tool
def summary(
    file: Files,
    gpu: Gpu = "",
    where: Where = "",
    steps: Steps = "",
    depth: Annotated[int, "Levels of modules in `layers`."] = 2,
    limit: Limit = _FIRST,
) -> Answer:
    """What bounds the work and what to change first (`verdict`); gains (`advice`), and where.

    Also how busy the GPU is, why it idles, steps, MFU. advice[].evidence[].row_ids are `idx` of
    rows that the tools prof and explain show.
    """
    from pyprof.analysis.summary import composition, overview  # noqa: PLC0415 - the server answers before it is loaded
    from pyprof.answers.summary_answer import first_rows  # noqa: PLC0415 - as above
    from pyprof.commands.summary import memory_peak  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above

    summarise = partial(overview.summarise, chosen=steps or None, asked=_conditions(where))
    with captures(*several(file)) as opened:
        sums = opened.map_reduce(summarise, merge_sums, _override(gpu))
        given = composition.summary(sums, memory_peak(opened.paths))
    return bound(first_rows(given, check_limit(limit), depth), limit, given.warnings)


@tool
def lines(
    file: Files,
    gpu: Gpu = "",
    where: Where = "",
    steps: Steps = "",
    source: Annotated[
        str, "Folder of the source, to include the lines' text. Default: no source is read."
    ] = "",
    limit: Limit = _LIMIT,
) -> Answer:
    """GPU time by source line, the most expensive first, with potential gains at these lines."""
    from pyprof.analysis.summary import source_lines  # noqa: PLC0415 - as above
    from pyprof.answers.lines_answer import with_source  # noqa: PLC0415 - as above
    from pyprof.inputs.user_source import Sources  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above

    if source and not Path(allowed(source)).is_dir():
        raise ValueError(f"{source}: no such folder")
    asked = _conditions(where)
    summarise = partial(source_lines.summarise_lines, chosen=steps or None, asked=asked)
    with captures(*several(file)) as opened:
        sums = opened.map_reduce(summarise, merge_sums, _override(gpu))
    given = source_lines.lines_answer(sums)
    if source:
        given = with_source(given, Sources(Path(source)).line)
    return bound(given, check_limit(limit), given.warnings)


@tool
def prof(
    file: Files,
    gpu: Gpu = "",
    where: Where = "",
    columns: Annotated[str, "Names of columns, separated by commas. Default: the usual ones."] = "",
    by: Annotated[
        str, "Group rows by op, line, layer, kernel, params, dir, family, step, rank..."
    ] = "",
    sort: Annotated[
        str, "A column, largest first; `COL-`: smallest first. Default: the time."
    ] = "sil",
    limit: Limit = _LIMIT,
) -> Answer:
    """Kernels, copies and fills with FLOPs, bytes, Tensor Core use, efficiency, and why.

    rows_left_out says how many more rows match.
    """
    from pyprof.analysis import rows  # noqa: PLC0415 - as above
    from pyprof.analysis.memory import memory_columns  # noqa: PLC0415 - as above
    from pyprof.commands.prof import GROUPS  # noqa: PLC0415 - as above

    if by and by not in GROUPS:
        raise ValueError(f"cannot group by {by!r}; choose from {', '.join(GROUPS)}")
    names = rows.columns(columns, by=by) if by else rows.columns_for_json(columns)
    sort = "total" if by and sort == "sil" else sort
    asked = rows.Query(names, by or None, sort, check_limit(limit), _conditions(where))
    rows.check_conditions(asked)
    work, merge = (partial(one, asked=asked) for one in (rows.summarise_rows, rows.merge_answers))
    with captures(*several(file)) as opened:
        summed = opened.map_reduce(work, merge, _override(gpu), host=asked.of_host)
        answer = rows.apply_global_conditions(summed, asked)
        device = memory_columns.highest_device(asked, opened.paths)
    if asked.names_memory and device is None:
        raise ValueError(memory_columns.NOT_RECORDED)
    return bound(rows.prof_answer(answer, asked, device), limit, answer.warnings)


@tool
def whatif(
    file: Files,
    dtype: Annotated[str, "Compute float32 in this type: `tf32`, `bf16` or `fp16`."] = "",
    fuse: Annotated[str, "`attention`, `pointwise`, or both, by a comma."] = "",
    batch: Annotated[str, "Multiply the batch: `2x`."] = "",
    target_gpu: Annotated[str, "Run on this GPU instead: `H100 SXM`."] = "",
    limit: Limit = _LIMIT,
) -> Answer:
    """Kernel time after changes, predicted with an interval and what it rests on; or refused.

    Without parameters: each change of a type or by fusion, and all that are possible together; and
    what CUDA graphs, overlap and a fused optimizer could gain at most.
    """
    from pyprof.analysis.whatif import changes_of, summarise_whatif  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above

    fusions = [*filter(None, map(str.strip, fuse.split(",")))]
    asked = changes_of(dtype or None, fusions, batch or None, target_gpu or None)
    with captures(*several(file)) as opened:
        given = opened.map_reduce(partial(summarise_whatif, changes=asked), merge_sums)
    return bound(given, check_limit(limit), given.warnings)


@tool
def explain(
    file: File,
    row: Annotated[
        int | None, "Its `idx`. Default: the longest row, or the longest that `where` leaves."
    ] = None,
    gpu: Gpu = "",
    where: Where = "",
) -> Answer:
    """How one row of prof came to its numbers: the op chosen, its cost, its share, the roofline."""
    import numpy as np  # noqa: PLC0415 - as above

    from pyprof.analysis.explain import explanation  # noqa: PLC0415 - as above
    from pyprof.inputs.source import load  # noqa: PLC0415 - as above
    from pyprof.prof import where as conditions  # noqa: PLC0415 - as above

    if row is not None and where:
        raise ValueError("`row` and `where` exclude each other")
    with captures(file):
        table = load(file, _override(gpu)).table
        if row is None:
            mask = conditions.rows(table, _conditions(where))
            rows = np.arange(table.records.rows) if mask is None else np.flatnonzero(mask)
            if not len(rows):
                raise ValueError("no row matches")
            row = int(rows[np.argmax(table.duration_ns[rows])]) + 1
        return bound(explanation(table, row), MAX_LIMIT)


@tool
def diff(
    before: Annotated[str, "A capture, or a folder or glob of all ranks."],
    after: Annotated[str, "The same, after the change."],
    by: Annotated[
        str, "Keys that match rows, separated by commas: op, shape, dtype, layer, line, kernel."
    ] = "op,shape,dtype,layer",
    steps: Steps = "",
    limit: Limit = _LIMIT,
) -> Answer:
    """What is faster, slower, new or gone in `after`, and whether that is more than noise.

    status `not significant`: may be chance. causes: different kernel, shape, GPU, clock. waterfall:
    from the time of `before` to that of `after`. Rows cannot be chosen: steps are compared whole.
    """
    from pyprof.commands.diff import compare_captures, parse_keys  # noqa: PLC0415 - as above

    with captures(before, after) as opened:
        answer, warnings = compare_captures(opened, parse_keys(by), steps or None)
    shown = answer.changes[: check_limit(limit)]
    given = replace(answer, changes=shown, changes_left_out=len(answer.changes) - len(shown))
    return bound(given, limit, warnings)


@tool
def doctor(
    file: Annotated[str, "Path of a capture. Default: this machine is examined."] = "",
    limit: Limit = _LIMIT,
) -> Answer:
    """What a capture hides or distorts; without one, what this machine lacks for captures."""
    from pyprof.commands.doctor import examine  # noqa: PLC0415 - as above

    if not file:
        return bound(examine(None), check_limit(limit))
    with captures(file):
        return bound(examine(file), check_limit(limit))


@tool
def memory(
    file: Annotated[
        str | list[str],
        "Path of a torch memory snapshot, a torch.profiler trace with memory events or an nsys "
        "capture, or a list of them: several are the ranks of one run.",
    ],
    trace: Annotated[str, "Capture of the same run, for layers and times."] = "",
    limit: Limit = _LIMIT,
) -> Answer:
    """What filled the memory: the peak by category, layer, line; growth per step; out of memory."""
    from pyprof.commands.memory import analyse  # noqa: PLC0415 - as above

    files = several(file)
    with captures(*files, *([trace] if trace else [])):
        return bound(analyse(files, trace or None), check_limit(limit))


@tool
def peaks(
    name: Annotated[str, "A GPU's name, or part of it. Default: all."] = "",
    limit: Limit = _LIMIT,
) -> Answer:
    """Peak FLOP/s and bandwidth that efficiency is relative to, by (part of) a GPU's name."""
    from pyprof.answers.peaks_answer import Peaks  # noqa: PLC0415 - as above
    from pyprof.commands.peaks import known  # noqa: PLC0415 - as above

    return bound(Peaks(tuple(known(name or None))), check_limit(limit))


@tool
def ranks(file: Files, limit: Limit = _LIMIT) -> Answer:
    """Ranks of a distributed job side by side: who waits for whom, which links are slow."""
    from pyprof.commands.ranks import compare_ranks, with_memory  # noqa: PLC0415 - as above

    with captures(*several(file)) as opened:
        job = with_memory(compare_ranks(opened), opened.paths)
    return bound(job, check_limit(limit), job.warnings)


def _override(gpu: str) -> Override:
    from pyprof.cli.options import override  # noqa: PLC0415 - as above

    return override({"gpu": (gpu,) if gpu else ()})


def _conditions(where: str) -> tuple[Condition, ...]:
    from pyprof.prof import where as conditions  # noqa: PLC0415 - as above

    return conditions.conditions([where] if where else [])


@tool
def try_changes(
    script: Annotated[str, "Path of a Python file."],
    changes: Annotated[
        list[str],
        "As `pyprof try --change`: bf16, compile, workers=4, fused-optimizer, channels-last, "
        "env=NAME=VALUE...",
    ],
    args: Annotated[list[str] | None, "Arguments of the script."] = None,
    steps: Annotated[int, "End each run after so many steps."] = 30,
    rounds: Annotated[int, "Each change runs twice per round."] = 1,
    limit: Limit = 20,
) -> Answer:
    """Run a script with and without changes, in turn: time, memory and losses of each.

    The script is never edited.
    """
    from pyprof.capture.script import Target, check  # noqa: PLC0415 - the server answers before it is loaded
    from pyprof.commands._trial import perform_trial  # noqa: PLC0415 - as above
    from pyprof.process import scratch  # noqa: PLC0415 - as above
    from pyprof.trial.change import parse  # noqa: PLC0415 - as above
    from pyprof.trial.experiment import Trial  # noqa: PLC0415 - as above
    from pyprof.trial.ranks import Ranks  # noqa: PLC0415 - as above

    if not changes:
        raise ValueError("name the changes to try")
    chosen = [parse(text) for text in changes]
    for path in (script, *(each.value for each in chosen if each.name == "patch")):
        allowed(path)
    target = Target(script, tuple(args or ()))
    check(target)
    with scratch.directory() as folder:
        trial = Trial(
            target=target,
            folder=folder / "trial",
            ranks=Ranks(0, 1, ""),
            steps=max(steps, 0),
            seed=True,
            report=lambda _: None,
        )
        trial.begin()
        return bound(
            perform_trial(trial, chosen, check_limit(rounds, "rounds")), check_limit(limit)
        )


READING = (summary, lines, prof, whatif, explain, diff, doctor, memory, peaks, ranks)
RUNNING = (try_changes,)
"""Tools that run a script; offered where the user allows it."""
