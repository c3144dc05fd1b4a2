"""Which captures a command reads, what it reads beside them, and where the work is done."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyprof.process import messages, overwrite_guard, progress, stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pyprof.inputs.executor import Executor
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Override

    _Options = Callable[[Callable[..., None]], Callable[..., None]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Captures:
    """The captures named on the command line, and the executor that works on them."""

    paths: tuple[str, ...]
    executor: Executor
    quiet: bool

    def map_reduce(
        self,
        summarise: Callable[[Source], T],
        merge: Callable[[T, T], T],
        override: Override | None = None,
        begin: Callable[[str], object] = str,
        *,
        host: bool = True,
    ) -> T:
        """Summarise them all; see `source.map_reduce`."""
        from pyprof.inputs import source  # noqa: PLC0415 - loads Arrow

        return source.map_reduce(
            self.paths, summarise, merge, self.executor, override, begin, host=host
        )

    def stages(self, count: int) -> AbstractContextManager[Callable[[str], None]]:
        """Show the stages of a single file on a progress bar; sets have their own bar."""
        return progress.stage_bar(
            count, *(self.paths if len(self.paths) == 1 else ()), quiet=self.quiet
        )

    def warn(self, texts: Sequence[str]) -> None:
        """Print warnings, unless `quiet`."""
        if not self.quiet:
            messages.warn(texts)


GRAPHS_AND_COUNTERS = ("graphs", "counters")
WITH_MODEL = (*GRAPHS_AND_COUNTERS, "model")

_QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only errors on stderr.")
_STRICT = click.option(
    "--strict",
    is_flag=True,
    help="Stop at a capture that cannot be read, instead of leaving it out.",
)


def _workers(_: click.Context, __: click.Parameter, text: str) -> int | str:
    """Parse a number of processes, at least 1; the address or file of a scheduler stays text."""
    if text.isdecimal() and int(text):
        return int(text)
    if not re.search(r"[:./]", text) and not Path(text).is_file():
        raise click.BadParameter(
            f"{text!r} is neither a number of processes nor the address or file of a Dask"
            " scheduler, such as tcp://host:8786"
        )
    return text


_WORKERS = click.option(
    "--workers",
    callback=_workers,
    metavar="N|ADDRESS",
    default="1",
    help="Work on N captures at a time, in N processes; or on a running Dask cluster, named by its "
    "scheduler's address or file. Default: 1, in this process.",
)


def reads_captures(
    *arguments: str,
    strict: bool = True,
    work: str = "pyprof.inputs.source",
    extra: Sequence[str] = WITH_MODEL,
) -> _Options:
    """Add arguments that name captures, and options for the work on them, to a command.

    One argument, such as `FILE...`, takes a capture, several, a folder, a glob or a URL;
    `[FILE]...` also stdin if none is given. With several arguments, `A` and `B`, each takes one
    capture. The command gets them as `captures`, a Captures. Without `strict` the command
    defines its own --strict. `work` is the module that works on each capture, `extra` are the kinds
    for `takes_extra_files`.
    """
    names = ["files"] if len(arguments) == 1 else [name.lower() for name in arguments]
    options: list[_Options] = [
        click.argument(name, nargs=-1 if metavar.endswith("...") else 1,
                       required=metavar[0] != "[", metavar=metavar)
        for name, metavar in zip(names, arguments, strict=True)
    ]  # fmt: skip
    options += [_QUIET, _STRICT, _WORKERS] if strict else [_QUIET, _WORKERS]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def opened(**given: Any) -> None:  # noqa: ANN401 - all options, the command's own, too
            named = [given.pop(name) for name in names]
            if not named[0] and stdio.terminal(sys.stdin):
                raise click.UsageError(
                    "Missing argument 'FILE'; name a capture, or - for records on stdin"
                )
            paths = tuple(named) if len(named) > 1 else named[0] or (overwrite_guard.STDIN,)
            workers, quiet = given.pop("workers"), given.pop("quiet")
            from pyprof.inputs import executor  # noqa: PLC0415 - takes time to load

            if not quiet:
                for folder in filter(os.path.isdir, paths):
                    _name_baseline(folder)
            stops = strict and given.pop("strict")
            with executor.open_executor(workers, strict=stops, quiet=quiet, work=work) as chosen:
                command(captures=Captures(paths, chosen, quiet), **given)

        made = takes_extra_files(*extra)(opened)
        for add in reversed(options):
            made = add(made)
        return made

    return decorate


def _name_baseline(folder: str) -> None:
    """Print which capture is read from a folder that `pyprof try` wrote."""
    from pyprof.inputs import trial_folder  # noqa: PLC0415 - most captures are named as files

    names = ", ".join(capture.name for capture in trial_folder.baselines(Path(folder)))
    if names:
        messages.say(f"{folder}: a trial; this is its run without a change, {names}")


_EXTRA_HELP = {
    "graphs": "traces of the capture of CUDA graphs, or a folder of them (default: capture_traces/ "
    "beside each trace)",
    "counters": "counters, as CSV of Nsight Compute",
    "model": "the model's config.json (Hugging Face), for sizes that captures lack",
    "snapshot": "a torch memory snapshot (default: NAME.memory.pickle beside FILE)",
}


def takes_extra_files(*kinds: str) -> _Options:
    """Add --with to a command, for files of these kinds (keys of `_EXTRA_HELP`).

    Traces and counters apply while the command runs; it gets `model`, a ModelConfig, and
    `snapshot`, a path, if it takes them.
    """
    listed = "; ".join(_EXTRA_HELP[kind] for kind in kinds)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--with",
            "extra_files",
            multiple=True,
            metavar="FILE",
            help=f"Also read FILE, by its content: {listed}. Repeatable.",
        )
        @wraps(command)
        def with_inputs(extra_files: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401 - the command's own
            from pyprof.process import arrow_setup  # noqa: PLC0415 - only where captures are read
            from pyprof.readers import settings  # noqa: PLC0415 - as above

            arrow_setup.prepare()
            of_kind = _extra_files(extra_files, kinds)
            given |= {kind: of_kind.pop(kind) for kind in ("model", "snapshot") if kind in kinds}
            with settings.using(of_kind["graphs"], of_kind["counters"]):
                command(**given)

        return with_inputs

    return decorate


def _extra_files(places: Sequence[str], kinds: Sequence[str]) -> dict[str, Any]:
    """Sort the files of --with by kind. Raises CaptureError, or UsageError if not of `kinds`."""
    of_kind: dict[str, Any] = {"graphs": [], "counters": None, "model": None, "snapshot": None}
    if not places:
        return of_kind
    from pyprof.inputs import extra_files, model_config  # noqa: PLC0415 - they load Arrow
    from pyprof.readers import sidecars  # noqa: PLC0415 - as above

    for place in places:
        kind = extra_files.kind_of(place)
        text = extra_files.KINDS[kind]
        if kind not in kinds:
            raise click.UsageError(f"--with {place}: this command does not use {text}")
        if kind == "graphs":
            overwrite_guard.current().reads(map(str, sidecars.in_graph_captures(Path(place))))
            of_kind[kind].append(_make_absolute(place))
            continue
        if of_kind[kind] is not None:
            raise click.UsageError(f"--with {place}: {text} was named before")
        overwrite_guard.current().reads([place])
        of_kind[kind] = model_config.read(place) if kind == "model" else _make_absolute(place)
    return of_kind


def _make_absolute(place: str) -> str:
    """Return a path that any process can read; messages show it as given."""
    absolute = str(Path(place).absolute())
    overwrite_guard.current().remember_spelling(absolute, place.rstrip("/") or place)
    return absolute
