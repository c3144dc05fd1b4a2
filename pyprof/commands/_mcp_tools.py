"""The tools of `pyprof mcp`: each returns the JSON of a command, bounded.

They read the files that the caller names, and nothing else; no tool writes.
"""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from pyprof.errors import PyprofError, refused
from pyprof.options import Captures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LIMIT, MOST = 20, 500
_MAX_TEXT = 2000
"""Maximum characters of a text; names of kernels, and stacks, can be longer."""
_FIRST, _FINDINGS = 12, 3
"""Entries of a summary's lists, and of evidence: what an agent reads first stays below 20 kB."""
_NUMBERS = 64
"""Maximum length of lists of numbers, or `limit`."""

Paths: TypeAlias = str | list[str]
"""A file, a folder or a glob; or several."""
Answer: TypeAlias = dict[str, Any]

TOOLS: list[Callable[..., Answer]] = []
RUNNING_TOOLS: list[Callable[..., Answer]] = []
"""Tools that run a script; offered where the user allows it."""
_ONE_AT_A_TIME = threading.Lock()
"""Captures are large: two at once might not fit into memory."""


class ToolUseError(Exception):
    """An error that the caller can fix, in one line."""


def tool(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Register a tool that only reads; its docstring is what an agent reads."""
    guarded = _guarded(function)
    TOOLS.append(guarded)
    return guarded


def running_tool(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Register a tool that runs a script."""
    guarded = _guarded(function)
    RUNNING_TOOLS.append(guarded)
    return guarded


def _guarded(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Return the tool with errors that the caller can fix as ToolUseError, one call at a time."""

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


_ROOTS: ContextVar[tuple[str, ...]] = ContextVar("_ROOTS", default=())
"""Only files in these folders may be read; anything if empty."""


@contextmanager
def restrict_to(roots: Sequence[str]) -> Iterator[None]:
    """Refuse files outside of these folders, with links resolved, during the `with`."""
    token = _ROOTS.set(tuple(map(os.path.realpath, roots)))
    try:
        yield
    finally:
        _ROOTS.reset(token)


def _allowed(place: str) -> str:
    """Return the path; raises PyprofError if it is outside of the folders."""
    roots, real = _ROOTS.get(), os.path.realpath(place)
    if roots and not any(os.path.commonpath([real, root]) == root for root in roots):
        raise PyprofError(f"{place}: lies outside of the folders that this server reads (--root)")
    return place


def _check_captures(paths: Sequence[str]) -> None:
    """Raise PyprofError if one of the captures may not be read."""
    from pyprof.inputs.find import find  # noqa: PLC0415 - as above

    for path in paths if _ROOTS.get() else ():
        # check first: a pattern must not reveal what exists outside
        _allowed(path if Path(path).exists() else re.split(r"[*?\[]", path)[0] or ".")
        for place in find([path]):
            _allowed(place)


@contextmanager
def _captures(*paths: str) -> Iterator[Captures]:
    """Open the captures that the caller names: local ones, all readable."""
    from pyprof.inputs import executor  # noqa: PLC0415 - the server answers before it is loaded
    from pyprof.inputs.files import is_url  # noqa: PLC0415 - as above

    for path in paths:
        if is_url(path):
            raise PyprofError(f"{path}: only local files are read; download it first")
        if path == "-":
            raise PyprofError("-: stdin belongs to the client; name a file")
    _check_captures(paths)
    with executor.open_executor(1, None, strict=True, quiet=True) as chosen:
        yield Captures(paths, chosen, quiet=True)


def _several(captures: Paths) -> list[str]:
    paths = [captures] if isinstance(captures, str) else captures
    if not paths:
        raise PyprofError("no captures given; name files, a folder or a glob")
    return paths


def _count(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise ValueError(f"limit {limit}: must be from 1 to {MOST}")
    return limit


def bound(given: object, limit: int, warnings: Sequence[str] = ()) -> Answer:
    """Return an answer as JSON, with at most `limit` entries per list, and what was left out.

    `cut` has the number of entries, or characters, left out, by the name of the list.
    """
    from pyprof.answers import document  # noqa: PLC0415 - as above

    left_out: dict[str, int] = {}
    content = _cut(json.loads(document(given, warnings)), limit, "", left_out)
    return {**content, "cut": left_out}


def _cut(value: Any, limit: int, name: str, left_out: dict[str, int]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {
            key: _cut(each, limit, f"{name}.{key}".lstrip("."), left_out)
            for key, each in value.items()
        }
    if isinstance(value, list):
        numbers = all(isinstance(each, (int, float)) for each in value)
        most = max(limit, _NUMBERS) if numbers else limit
        if name.endswith(("evidence", "evidence.row_ids")):
            most = _FINDINGS
        if len(value) > most:
            left_out[name] = left_out.get(name, 0) + len(value) - most
        return [_cut(each, limit, name, left_out) for each in value[:most]]
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        left_out[name] = left_out.get(name, 0) + len(value) - _MAX_TEXT
        return value[:_MAX_TEXT]
    return value


@tool
def summary(captures: Paths, steps: str = "", depth: int = 2, limit: int = _FIRST) -> Answer:
    """What bounds the work and what to change first (`verdict`); where the GPU time goes, gains.

    Also how busy the GPU is, why it idles, steps, MFU.

    captures: a file, folder or glob (several are the ranks of one run). steps: `3:` or `3:7`.
    depth: levels of modules in `layers`. limit: entries per list; `cut` says what is left out.
    advice[].evidence[].row_ids are `idx` of rows that the tools prof and explain show.
    """
    from pyprof.analysis.summary import overview  # noqa: PLC0415 - as above
    from pyprof.answers.summary_answer import first_rows  # noqa: PLC0415 - as above
    from pyprof.commands.summary import memory_of  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above

    with _captures(*_several(captures)) as opened:
        sums = opened.map_reduce(partial(overview.summarise, chosen=steps or None), merge_sums)
        given = overview.summary(sums, memory_of(opened.paths))
    return bound(first_rows(given, _count(limit), depth), limit, given.warnings)


@tool
def lines(captures: Paths, steps: str = "", source: str = "", limit: int = LIMIT) -> Answer:
    """GPU time by source line, the most expensive first, with potential gains at these lines.

    source: folder of the source, to include the lines' text; without it no source is read.
    """
    from pyprof.analysis.summary import source_lines  # noqa: PLC0415 - as above
    from pyprof.answers.lines_answer import with_source  # noqa: PLC0415 - as above
    from pyprof.inputs.user_source import Sources, line_texts  # noqa: PLC0415 - as above
    from pyprof.records.merging import merge_sums  # noqa: PLC0415 - as above

    if source and not Path(_allowed(source)).is_dir():
        raise ValueError(f"{source}: no such folder")
    with _captures(*_several(captures)) as opened:
        summarise = partial(source_lines.summarise_lines, chosen=steps or None)
        given = source_lines.lines_answer(opened.map_reduce(summarise, merge_sums))
    if source:
        given = with_source(given, line_texts(Sources(Path(source))))
    return bound(given, _count(limit), given.warnings)


@tool
def prof(
    captures: Paths,
    columns: str = "",
    where: str = "",
    by: str = "",
    sort: str = "sil",
    limit: int = LIMIT,
) -> Answer:
    """Kernels, copies and fills with FLOPs, bytes, Tensor Core use, efficiency, and why.

    columns: names separated by commas (default: the usual ones). where: conditions joined by
    `and`: `tc=0 and eff<20`, `op~attention`, `idx=12`. by: group rows by op, line, layer, kernel,
    params, dir, family, step, rank... sort: a column, largest first (`COL-`: smallest first);
    of groups: total. rows_left_out says how many more rows match.
    """
    from pyprof.analysis import rows  # noqa: PLC0415 - as above
    from pyprof.analysis.memory import memory_columns  # noqa: PLC0415 - as above
    from pyprof.commands.prof import GROUPS  # noqa: PLC0415 - as above
    from pyprof.prof import where as conditions  # noqa: PLC0415 - as above

    if by and by not in GROUPS:
        raise ValueError(f"cannot group by {by!r}; choose from {', '.join(GROUPS)}")
    names = rows.columns(columns, by=by) if by else rows.columns_for_json(columns)
    sort = "total" if by and sort == "sil" else sort
    asked = rows.Asked(
        names,
        by or None,
        sort,
        _count(limit),
        conditions.conditions([where] if where else []),
    )
    work, merge = (partial(one, asked=asked) for one in (rows.summarise_rows, rows.merge_answers))
    with _captures(*_several(captures)) as opened:
        answer = rows.settled(opened.map_reduce(work, merge, host=asked.of_host), asked)
        with_memory = memory_columns.with_memory(asked, opened.paths)
    if asked.names_memory and with_memory is None:
        raise ValueError(memory_columns.NOT_RECORDED)
    return bound(rows.prof_answer(answer, asked, with_memory), limit, answer.warnings)


@tool
def explain(capture: str, row: int) -> Answer:
    """How one row of prof came to its numbers: the op chosen, its cost, its share, the roofline.

    row: its `idx`.
    """
    from pyprof.analysis.explain import explanation  # noqa: PLC0415 - as above
    from pyprof.inputs.source import load  # noqa: PLC0415 - as above

    with _captures(capture):
        return bound(explanation(load(capture).table, row), MOST)


@tool
def diff(
    a: str,
    b: str,
    by: str = "op,shape,dtype,layer",
    steps: str = "",
    limit: int = LIMIT,
) -> Answer:
    """What is faster, slower, new or gone in b, and whether that is more than noise.

    a, b: a file, or a folder or glob of all ranks. by: keys that match rows, of op, shape, dtype,
    layer, line, kernel. status `not significant`: may be chance. causes: other kernel, shape, GPU,
    clock. waterfall: from a's time to b's.
    """
    from pyprof.answers import diff_answer as answers_of_diff  # noqa: PLC0415 - as above
    from pyprof.commands.diff import compare_captures, parse_keys, side_warnings  # noqa: PLC0415 - as above

    with _captures(a, b) as opened:
        comparison, sides = compare_captures(opened, parse_keys(by), steps or None)
    given = answers_of_diff.diff(comparison, top=_count(limit))
    return bound(given, limit, side_warnings(sides))


@tool
def doctor(capture: str = "", limit: int = LIMIT) -> Answer:
    """What a capture hides or distorts; without one, what this machine lacks for captures."""
    from pyprof.commands.doctor import examine  # noqa: PLC0415 - as above

    if not capture:
        return bound(examine(None), _count(limit))
    with _captures(capture):
        return bound(examine(capture), _count(limit))


@tool
def memory(recordings: Paths, trace: str = "", limit: int = LIMIT) -> Answer:
    """What filled the memory: the peak by category, layer, line; growth per step; out of memory.

    recordings: torch memory snapshots, torch.profiler traces with memory events, nsys captures;
    several are the ranks of one run. trace: capture of the same run, for layers and times.
    """
    from pyprof.answers.memory_answer import Memory  # noqa: PLC0415 - as above
    from pyprof.commands.memory import analyse  # noqa: PLC0415 - as above

    files = _several(recordings)
    with _captures(*files, *([trace] if trace else [])):
        return bound(Memory(analyse(files, trace or None)), _count(limit))


@tool
def peaks(name: str = "", limit: int = LIMIT) -> Answer:
    """Peak FLOP/s and bandwidth that efficiency is relative to, by (part of) a GPU's name."""
    from pyprof.answers import peaks_answer as answers_of_peaks  # noqa: PLC0415 - as above
    from pyprof.answers import peaks_rows as cards  # noqa: PLC0415 - as above
    from pyprof.gpu import ceilings  # noqa: PLC0415 - as above

    rows = cards.find(name or None, cards.measured_rows(ceilings.load().values()))
    return bound(answers_of_peaks.peaks(rows), _count(limit))


@tool
def ranks(captures: Paths, limit: int = LIMIT) -> Answer:
    """Ranks of a distributed job side by side: who waits for whom, which links are slow."""
    from pyprof.answers import ranks_answer as answers_of_ranks  # noqa: PLC0415 - as above
    from pyprof.commands.ranks import compare_ranks  # noqa: PLC0415 - as above
    from pyprof.commands.summary import memory_of  # noqa: PLC0415 - as above

    with _captures(*_several(captures)) as opened:
        job = compare_ranks(opened)
        memory = memory_of(opened.paths)
    return bound(answers_of_ranks.ranks(job, memory), _count(limit), job.warnings)


@running_tool
def try_changes(
    script: str,
    changes: list[str],
    args: list[str] | None = None,
    steps: int = 30,
    rounds: int = 1,
    limit: int = LIMIT,
) -> Answer:
    """Run a script with and without changes, in turn: time, memory and losses of each.

    script: a Python file. changes: as `pyprof try --change`, such as bf16, compile, workers=4,
    fused-optimizer, channels-last, env=NAME=VALUE. steps: end each run after so many. rounds: each
    change runs twice per round. The script is never edited.
    """
    from pyprof.capture.script import Target, check  # noqa: PLC0415 - as above
    from pyprof.commands._trial import perform_trial  # noqa: PLC0415 - as above
    from pyprof.process import scratch  # noqa: PLC0415 - as above
    from pyprof.trial.change import parse  # noqa: PLC0415 - as above
    from pyprof.trial.experiment import Trial  # noqa: PLC0415 - as above
    from pyprof.trial.ranks import Ranks  # noqa: PLC0415 - as above

    if not changes:
        raise ValueError("name the changes to try")
    chosen = [parse(text) for text in changes]
    for path in (script, *(each.value for each in chosen if each.name == "patch")):
        _allowed(path)
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
        return bound(perform_trial(trial, chosen, _count(rounds)), _count(limit))
