"""Options shared by commands: which captures, where the work is done, which peaks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyprof import cli, overwrite_guard, progress
from pyprof.cli_types import Number, Quantity
from pyprof.errors import CaptureError
from pyprof.process import stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pyprof.inputs.executor import Executor
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Override
    from pyprof.prof.where import Condition

    _Options = Callable[[Callable[..., None]], Callable[..., None]]

T = TypeVar("T")
_Command = TypeVar("_Command", bound="Callable[..., Any]")


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
        """Show stages of a single file on a bar; sets have a bar of their own."""
        return progress.stage_bar(
            count, *(self.paths if len(self.paths) == 1 else ()), quiet=self.quiet
        )

    def warn(self, texts: Sequence[str]) -> None:
        """Print warnings, unless `quiet`."""
        if not self.quiet:
            cli.warn(texts)


_QUIET = click.option("-q", "--quiet", is_flag=True, help="Print only errors on stderr.")
_STRICT = click.option(
    "--strict",
    is_flag=True,
    help="Stop at a capture that cannot be read, instead of leaving it out.",
)
_WORKERS = click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Work on N captures at a time, in N processes. Default: 1, in this process.",
)
_DASK = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Work on a running Dask cluster, given by its scheduler's address or scheduler file.",
)


def reads_captures(
    *arguments: str, strict: bool = True, work: str = "pyprof.inputs.source"
) -> _Options:
    """Add arguments that name captures, and the options of work on them, to a command.

    One argument, such as `FILE...`, takes a capture, several, a folder, a glob or a URL;
    `[FILE]...` also stdin if none is given. Each of several arguments, `A` and `B`, takes one of
    these. The command gets them as `captures`, a Captures. Without `strict` it has a --strict of
    its own. `work` is the module of the work on each capture.
    """
    names = ["files"] if len(arguments) == 1 else [name.lower() for name in arguments]
    options: list[_Options] = [*map(_argument, names, arguments), _QUIET]
    options += [_STRICT, _WORKERS, _DASK] if strict else [_WORKERS, _DASK]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def opened(**given: Any) -> None:  # noqa: ANN401 - all options, the command's own, too
            named = [given.pop(name) for name in names]
            if not named[0] and stdio.terminal(sys.stdin):
                raise click.UsageError(
                    "Missing argument 'FILE'; name a capture, or - for records on stdin"
                )
            paths = tuple(named) if len(named) > 1 else named[0] or (overwrite_guard.STDIN,)
            workers, dask, quiet = (given.pop(name) for name in ("workers", "dask", "quiet"))
            if workers is not None and dask is not None:
                raise click.UsageError("--workers and --dask exclude each other")
            from pyprof.inputs import executor  # noqa: PLC0415 - takes time to load

            stops = strict and given.pop("strict")
            one_set = paths if len(names) == 1 else ()
            with executor.open_executor(
                workers or 1, dask, strict=stops, quiet=quiet, sources=one_set, work=work
            ) as chosen:
                command(captures=Captures(paths, chosen, quiet), **given)

        made = capture_options(opened)
        for add in reversed(options):
            made = add(made)
        return made

    return decorate


def _argument(name: str, metavar: str) -> _Options:
    if not metavar.endswith("..."):
        return click.argument(name)
    return click.argument(name, nargs=-1, required=metavar[0] != "[", metavar=metavar)


def capture_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add options for files read beside captures; they are set while the command runs."""

    @click.option(
        "--graph-captures",
        multiple=True,
        metavar="PATH",
        help="Traces of the capture of CUDA graphs: a file, or a folder of them. Repeatable. "
        "Default: capture_traces/ beside each trace.",
    )
    @click.option(
        "--counters",
        metavar="FILE",
        help="Counters of the same kernels, measured in a run under Nsight Compute: its CSV.",
    )
    @wraps(command)
    def with_inputs(graph_captures: tuple[str, ...], counters: str | None, **given: Any) -> None:  # noqa: ANN401 - the command's own
        from pyprof.process import arrow_setup  # noqa: PLC0415 - only where captures are read
        from pyprof.readers import settings, sidecars  # noqa: PLC0415 - as above

        arrow_setup.prepare()
        for place in graph_captures:
            if not Path(place).exists():
                raise CaptureError(f"{place}: no such file or folder; check --graph-captures")
            cli.register_inputs(str(path) for path in sidecars.in_graph_captures(Path(place)))
        if counters is not None and not Path(counters).is_file():
            raise CaptureError(f"{counters}: no such file; check --counters")
        graphs = [*map(_absolute, graph_captures)]
        with settings.using(graphs, counters and _absolute(counters)):
            command(**given)

    return with_inputs


def _absolute(place: str) -> str:
    """Return a path that any process can read; messages show it as given."""
    absolute = str(Path(place).absolute())
    overwrite_guard.current().spelt(absolute, place.rstrip("/") or place)
    return absolute


def where_option(command: _Command) -> _Command:
    """Add --where, as `conditions`, to a command; `read_conditions` parses them."""
    return click.option(
        "--where",
        "conditions",
        multiple=True,
        metavar="EXPR",
        help="Only rows that match: tc=0, op~attention, 'eff<20', 'sil>1e6'. Repeatable, or join"
        " conditions with `and`: rows must match all.",
    )(command)


def read_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Parse the values of --where; raises BadParameter."""
    from pyprof.prof import where  # noqa: PLC0415 - it loads Arrow

    try:
        return where.conditions(texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--where'") from None


_OPTIONS = (
    click.option("--gpu", metavar="NAME",
                 help="Use the peaks of this device; pyprof peaks lists them."),
    click.option("--clock-mhz", type=Number("1410"), metavar="MHZ",
                 help="Use the peaks at this SM clock."),
    click.option("--peak-flops", type=Quantity("FLOP/s"), metavar="FLOP/S",
                 help="Use this peak: 989e12, 989T."),
    click.option("--peak-bandwidth", type=Quantity("B/s"), metavar="B/S",
                 help="Use this peak bandwidth: 3.35e12, 3.35T."),
    click.option("--measured", is_flag=True,
                 help="Use the peaks that pyprof peaks --measure reached on this machine."),
)  # fmt: skip
_MODEL = click.option(
    "--model-config",
    metavar="FILE",
    help="The model's config.json (Hugging Face): sizes that captures lack, such as the width of "
    "experts.",
)
_NAMES = ("gpu", "clock_mhz", "peak_flops", "peak_bandwidth", "measured")


def peak_options(command: _Command) -> _Command:
    """Add the options of peaks, and --model-config, to a command; `override` reads them."""
    for option in reversed((*_OPTIONS, _MODEL)):
        command = option(command)
    return command


def model_option(command: _Command) -> _Command:
    """Add --model-config to a command that shows no peaks; `override` reads it."""
    return _MODEL(command)


def override(options: Mapping[str, Any]) -> Override:
    """Return the overrides that the options ask for."""
    from pyprof.inputs import model_config  # noqa: PLC0415 - loads Arrow
    from pyprof.prof.table import Override  # noqa: PLC0415 - as above

    model = options["model_config"]
    return Override(
        **{name: options[name] for name in _NAMES if name in options},
        model=model_config.read(model) if model else None,
    )
