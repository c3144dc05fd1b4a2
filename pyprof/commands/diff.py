"""`pyprof diff A B`: what got faster, slower, new or gone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from pyprof.cli.capture_options import Captures, reads_captures
from pyprof.cli.command import Command
from pyprof.cli.options import json_option, output_option, override, top_option
from pyprof.errors import of_source
from pyprof.process import output_file, overwrite_guard, progress
from pyprof.process.messages import say
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyprof.answers.diff_answer import Diff
    from pyprof.answers.memory_answer import MemoryDiff
    from pyprof.prof.table import Override

_REGRESSION = 3
"""Exit code if a limit is exceeded; 1 means that the captures could not be used."""
_Limit = TypeVar("_Limit")
_KEYS = ("op", "shape", "dtype", "layer", "line", "kernel")
DEFAULT_KEYS = "op,shape,dtype,layer"


@click.command("diff", cls=Command)
@click.option("--by", default=DEFAULT_KEYS, show_default=True, metavar="KEYS",
              help=f"Match rows by these keys: {', '.join(_KEYS)}. Keys that a capture lacks are "
              "ignored.")  # fmt: skip
@click.option("--steps", metavar="RANGE",
              help="Compare only these steps of both, counted from 0: `3:`, `3:7`.")  # fmt: skip
@top_option(20, "Number of changes to list; CSV and JSON have all.")
@click.option("--fail-if", "limits", multiple=True, metavar="LIMIT",
              help="Exit with code 3 beyond LIMIT, with 1 if it cannot be compared. 'slower>5%': "
              "the step takes longer, by more than noise; 'op>10%': any op does, or is new; "
              "'significant': however little. Whatever the noise: 'time>+3%', 'step>2ms', "
              "'kernels>0'; "
              "metrics: time, busy, idle, exposed, step, kernels, flops, bytes; by counters dram, "
              "energy, clock, tensor. For memory snapshots: 'peak>+5%', 'end>2GB'; metrics: peak, "
              "reserved, start, end. Repeatable.")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Write CSV.")
@json_option
@output_option(".csv, .json, .md, .html select the format")
@reads_captures("A", "B")
def command(
    captures: Captures, by: str, steps: str | None, top: int, limits: tuple[str, ...], target: str,
    *, as_csv: bool, as_json: bool, **how: str | None,
) -> None:  # fmt: skip
    """Compare captures A and B: what is faster, slower, new or gone in B.

    A and B are captures, or what `pyprof parse` wrote from them; a folder or a 'glob' names all
    ranks of a run. Of two torch memory snapshots, it compares what is held at the peaks. Rows are
    matched by what they compute, not by kernel name: a different kernel for the same op is still
    the same op. If both captures have steps of the same kind, numbers are means per step after
    warm-up, with intervals by the spread of the steps; otherwise they are totals.

    \b
    Examples:
      pyprof diff before.sqlite after.sqlite
      pyprof diff before.sqlite after.sqlite -o diff.md --fail-if 'time>+3%'
      pyprof diff before.sqlite after.sqlite --fail-if 'slower>2%' --json
      pyprof diff before.sqlite after.sqlite --by op,layer --csv
      pyprof diff ranks/ 'net.rank*.sqlite' --workers 2
      pyprof diff before.pickle after.pickle --fail-if 'peak>+5%' --json
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    asked = "csv" * as_csv + "json" * as_json
    form = output_file.output_format(target, "csv", "json", "md", "html", option=asked)
    if captures.paths == (overwrite_guard.STDIN,) * 2:
        raise click.UsageError("only one of A and B can be -, the records on stdin")
    if are_snapshots(captures.paths):
        if steps is not None or by != DEFAULT_KEYS:
            raise click.UsageError(
                "of memory snapshots the peaks are compared: without --by, --steps"
            )
        _compare_memory(captures.paths, limits, top, target, form)
        return
    from pyprof.analysis.diff import gate  # noqa: PLC0415 - it loads Arrow

    keys, checks = parse_keys(by), _limits(limits, gate.parse)
    from pyprof import answers  # noqa: PLC0415 - it loads Arrow

    diff, warnings = compare_captures(captures, keys, steps, override(how))
    captures.warn([*warnings, *diff.causes])
    diff, exceeded = gate.check(checks, diff)
    if form == "json":
        answers.write(target, diff, warnings)
    else:
        content = _format(diff, form, top, target)
        with output_file.open_output(target) as out:
            out.write(content)
    _conclude(diff.failed, exceeded)


def _conclude(violations: Sequence[str], exceeded: bool) -> None:  # noqa: FBT001 - of one caller each
    """Print the limits that failed, if any, and exit: with 1 if they could not be checked."""
    for sentence in violations:
        say(sentence)
    if violations:
        click.get_current_context().exit(_REGRESSION if exceeded else 1)


def are_snapshots(paths: Sequence[str]) -> bool:
    """Whether all files are memory snapshots."""
    from pyprof import readers  # noqa: PLC0415 - it loads Arrow
    from pyprof.readers.refusals import is_memory_snapshot  # noqa: PLC0415 - as above

    files = [Path(path) for path in paths]
    return all(file.is_file() and is_memory_snapshot(readers.read_head(file)) for file in files)


def _compare_memory(
    paths: Sequence[str], limits: Sequence[str], top: int, target: str, form: str
) -> None:
    """Write what takes more, or less, memory at the peak of the second snapshot."""
    if form not in ("", "json"):
        raise click.UsageError("memory snapshots are compared as text or JSON")
    from pyprof import answers  # noqa: PLC0415 - as above
    from pyprof.analysis.memory import memory_diff  # noqa: PLC0415 - as above
    from pyprof.render.text import formatting as text  # noqa: PLC0415 - as above
    from pyprof.render.text import memory_brief  # noqa: PLC0415 - as above

    checks = _limits(limits, memory_diff.parse)
    compared, exceeded = memory_diff.check(checks, compare_snapshots(paths))
    if form == "json":
        answers.write(target, compared)
    else:
        text.write(target, memory_brief.comparison(compared, top))
    _conclude(compared.failed, exceeded)


def compare_snapshots(paths: Sequence[str]) -> MemoryDiff:
    """Compare what the peaks of two memory snapshots hold."""
    from pyprof.analysis.memory.memory_diff import compare  # noqa: PLC0415 - as above
    from pyprof.analysis.memory.peaks import highest_first  # noqa: PLC0415 - as above
    from pyprof.inputs.memory_recordings import recordings  # noqa: PLC0415 - as above

    a, b = (highest_first(recordings([path])) for path in paths)
    return compare(a, b)


def compare_captures(
    captures: Captures, keys: tuple[str, ...], steps: str | None, measured: Override | None = None
) -> tuple[Diff, list[str]]:
    """Compare two captures, or sets of them; return the warnings of both, too."""
    from pyprof.analysis.diff.compare import compare  # noqa: PLC0415 - as above
    from pyprof.analysis.diff.side import merge_sides, summarise_side  # noqa: PLC0415 - as above
    from pyprof.inputs import source  # noqa: PLC0415 - it loads Arrow

    summarise = partial(summarise_side, keys=keys, chosen=steps)
    with progress.stage_bar(2 * source.STAGES + 1, *captures.paths, quiet=captures.quiet) as begin:
        a, b = (
            replace(captures, paths=(path,)).map_reduce(summarise, merge_sides, measured, begin)
            for path in captures.paths
        )
        begin("comparing")
        answer = compare(a, b)
    sides = zip("AB", (a, b), strict=True)
    return answer, [of_source(name, text) for name, side in sides for text in side.warnings]


def parse_keys(text: str) -> tuple[str, ...]:
    """Parse the keys that rows are matched by. Raises BadParameter for an unknown one."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or (unknown := [name for name in names if name not in _KEYS]):
        wrong = unknown[0] if names else text
        hint = suggestion(wrong, _KEYS) or ";"
        raise click.BadParameter(
            f"no key {wrong!r}{hint} keys are {', '.join(_KEYS)}", param_hint="'--by'"
        )
    return tuple(dict.fromkeys(names))


def _limits(texts: Sequence[str], parse: Callable[[str], _Limit]) -> list[_Limit]:
    try:
        return [parse(text) for text in texts]
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--fail-if'") from None


def _format(diff: Diff, form: str, top: int, target: str) -> bytes:
    from pyprof.render.text import diff_text  # noqa: PLC0415 - only now needed
    from pyprof.render.text import formatting as text  # noqa: PLC0415 - as above

    if form == "csv":
        return diff_text.csv_text(diff).encode()
    if form == "md":
        return diff_text.markdown_text(diff, top).encode()
    if form == "html":
        from pyprof.render.page import diff_page  # noqa: PLC0415 - as above

        return diff_page.page_of(diff).encode()
    return text.finish(diff_text.diff_lines(diff, top), coloured=text.colours(target))
