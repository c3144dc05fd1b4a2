"""`pyprof capture`: run a script under a profiler and keep what it recorded."""

from __future__ import annotations

import os
import shlex
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from pyprof.cli.command import Command
from pyprof.cli.option_types import Choice
from pyprof.errors import PyprofError
from pyprof.process.messages import say
from pyprof.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.capture.request import Outcome, StepsToRecord

SETTINGS: dict[str, Any] = {
    "allow_interspersed_args": False,  # arguments after the script are the script's
}


def _steps(
    context: click.Context, option: click.Parameter, value: str | None
) -> StepsToRecord | None:
    """Parse counts of steps; raises BadParameter."""
    from pyprof.capture.request import StepsToRecord  # noqa: PLC0415 - --help needs none of it

    try:
        return StepsToRecord.parse(value) if value else None
    except PyprofError as error:
        raise click.BadParameter(str(error), context, option) from None


def script_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a capture to a command, and the script with its arguments."""
    options = (
        click.option(
            "--tool",
            type=Choice(["auto", "nsys", "rocprofv3", "torch"]),
            default="auto",
            help="auto: nsys if it is installed and there is an NVIDIA GPU, rocprofv3 likewise for"
            " an AMD GPU, else torch.",
        ),
        click.option(
            "-o",
            "--output",
            metavar="NAME",
            help="Output file name without suffix; default: the script's name.",
        ),
        click.option("--all", "whole", is_flag=True, help="Capture the whole run."),
        click.option(
            "--steps",
            metavar="WAIT,WARMUP,ACTIVE[,REPEAT]",
            callback=_steps,
            help="Skip WAIT steps, warm up for WARMUP, capture ACTIVE, and do so REPEAT times"
            " (default 1; 0: until the script ends). The optimizer or pyprof.step() counts steps.",
        ),
        click.option("--no-init", is_flag=True, help="Do not call pyprof.init() for the script."),
        click.option(
            "--graph-nodes/--no-graph-nodes",
            default=True,
            show_default=True,
            help="Record each kernel inside CUDA graphs (nsys only).",
        ),
        click.option(
            "--memory",
            is_flag=True,
            help="Record memory, too: allocations in the capture and, of GPUs, torch's snapshot in "
            "NAME.memory.pickle. pyprof memory reads both.",
        ),
        click.option(
            "--metrics",
            is_flag=True,
            help="Also sample what the GPUs do (docs/capture.md): DRAM, Tensor Cores, clocks with"
            " nsys; power, clocks and temperature with torch.",
        ),
        click.option("-m", "module", is_flag=True, help="Run SCRIPT as a module, like python -m."),
        click.argument(
            "command",
            nargs=-1,
            required=True,
            type=click.UNPROCESSED,
            metavar="SCRIPT [ARGS]...",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command(
    "capture",
    cls=Command,
    context_settings=SETTINGS,
    options_metavar="[OPTIONS]",
)
@script_options
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:  # noqa: ANN401 - those of click
    """Run SCRIPT with its ARGS under a profiler and keep what it recorded.

    Writes NAME.sqlite (nsys), NAME.db (rocprofv3) or NAME.pt.trace.json.gz (torch.profiler); in a
    job of several ranks, each rank writes its own NAME.rankN file. Only the range that the script
    marks is captured: between torch.cuda.profiler.start() and stop(), or inside pyprof.profile().
    Without one, and without --steps, the whole script is captured. Exits with the script's exit
    code.

    \b
    Examples:
      pyprof capture train.py --epochs 1
      pyprof capture --steps 5,2,3 -o net train.py
      pyprof capture --memory train.py
      torchrun --nproc-per-node 2 -m pyprof.capture train.py
    """

    def conclude(outcome: Outcome) -> int:
        print_outcome(outcome)
        return outcome.exit_code()

    context.exit(conclude(perform(conclude=conclude, **options)))


def perform(
    command: tuple[str, ...],
    tool: str = "auto",
    output: str | None = None,
    *,
    whole: bool = False,
    steps: StepsToRecord | None = None,
    no_init: bool = False,
    graph_nodes: bool = True,
    memory: bool = False,
    metrics: bool = False,
    module: bool = False,
    conclude: Callable[[Outcome], int] = lambda outcome: outcome.code,
) -> Outcome:
    """Run the script according to the options. Raises PyprofError if that is impossible.

    If the script ends this process itself, `conclude` is called and returns the exit code.
    """
    from pyprof.capture import script  # noqa: PLC0415 - --help needs none of it
    from pyprof.capture.request import Request  # noqa: PLC0415 - as above

    target = script.Target(command[0], tuple(command[1:]), module=module)
    script.check(target)
    if whole and steps:
        raise click.UsageError("--all and --steps exclude each other")
    name = output or target.label()
    if name.endswith(("/", os.sep)):  # its files would be hidden ones
        raise PyprofError(f"-o {name}: names a folder; add a name: -o {name}{target.label()}")
    name.encode()  # torch takes no path that is not UTF-8, but reports that only after the run
    request = Request(
        target,
        name,
        whole=whole,
        steps=steps,
        instrument=not no_init,
        graph_nodes=graph_nodes,
        memory=memory,
        metrics=metrics,
    )
    nsys_path = _nsys(tool)
    rocprofv3_path = None if nsys_path else _rocprofv3(tool)
    if (nsys_path or rocprofv3_path) and (not no_init or steps or memory):
        _require_torch()
    if nsys_path is not None:
        from pyprof.capture.nsight import nsys_capture  # noqa: PLC0415 - only where it is used

        return nsys_capture.run(request, nsys_path)
    if rocprofv3_path is not None:
        from pyprof.capture.rocm import rocprofv3_capture  # noqa: PLC0415 - as above

        return rocprofv3_capture.run(request, rocprofv3_path)
    from pyprof.capture.kineto import torch_profiler  # noqa: PLC0415 - as above

    return torch_profiler.run(request, conclude)


def _nsys(tool: str) -> str | None:
    """Return the nsys to use; None for torch."""
    from pyprof.capture import machine  # noqa: PLC0415 - --help needs none of it

    if tool in ("torch", "rocprofv3") or (tool == "auto" and not machine.find_gpus()):
        return None
    nsys_path = machine.find_nsys()
    if tool == "nsys" and not machine.find_gpus():
        say("there is no GPU here, so nsys records ranges only; --tool torch times ops on the CPU")
    if nsys_path is None and tool == "nsys":
        raise PyprofError(
            "nsys is neither on PATH nor in the usual places; install nsight-systems from NVIDIA, "
            "or use --tool torch"
        )
    return nsys_path


def _rocprofv3(tool: str) -> str | None:
    """Return the rocprofv3 to use; None for torch."""
    from pyprof.capture import machine  # noqa: PLC0415 - --help needs none of it

    if tool == "auto":
        return machine.find_rocprofv3() if machine.has_amd_gpu() else None
    if tool != "rocprofv3":
        return None
    path = machine.find_rocprofv3()
    if path is None:
        raise PyprofError(
            "rocprofv3 is neither on PATH nor in /opt/rocm/bin; install rocprofiler-sdk of ROCm 7, "
            "or use --tool torch"
        )
    return path


def _require_torch() -> None:
    """Raise PyprofError without torch, before the profiler starts the script that would need it."""
    if find_spec("torch") is None:
        raise PyprofError(
            "pyprof.init(), --steps and --memory need torch: install it in this Python, or use "
            "--no-init alone"
        )


def print_outcome(outcome: Outcome, *, following: str = "summary", kept: bool = True) -> None:
    """Print what was captured, where it is, and the command that comes next."""
    for note in outcome.notes:
        say(note)
    if not kept:
        say("the capture is not kept: this folder is not writable; use -o NAME to keep it")
        return
    for path in dict.fromkeys((outcome.path, *outcome.others, *outcome.recordings)):
        if path is not None:
            say(f"{path} ({amount(path.stat().st_size, 'B')})")
    if outcome.captures:
        names = shlex.join(map(str, outcome.captures))
        say(f"next: pyprof {following} {names}")
    if outcome.recordings:
        say(f"next: pyprof memory {shlex.join(map(str, outcome.recordings))}")
