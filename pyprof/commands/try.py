"""`pyprof try`: apply changes to a script that stays as it is, and measure each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyprof.cli.command import Command
from pyprof.cli.option_types import WholeNumber
from pyprof.cli.options import json_option
from pyprof.commands.capture import SETTINGS
from pyprof.errors import NOTE, PyprofError
from pyprof.process import output_file, signals
from pyprof.process.messages import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.try_answer import Try
    from pyprof.trial.change import Chosen
    from pyprof.trial.experiment import Trial, TrialRun

_SLOWER = 3
"""Exit code with --fail-if-slower, if a change is slower."""
_STEPS, _ROUNDS = 50, 2
_LAUNCHER = "torchrun"


@click.command("try", cls=Command, context_settings=SETTINGS)
@click.option("--change", "texts", multiple=True, metavar="NAME[=VALUE]",
              help="A change to try; --list shows all. Repeatable. Default: those that the "
              "script's own summary advises, then together those that helped.")  # fmt: skip
@click.option("--together", is_flag=True, help="Try those of --change that helped together, too.")
@click.option("--list", "listing", is_flag=True, help="List the changes.")
@click.option("--rounds", type=WholeNumber(1), default=_ROUNDS, show_default=True, metavar="N",
              help="Run each change 2 N times, with a run without it before and after each "
              "two; more if the machine is busy.")  # fmt: skip
@click.option("--steps", type=WholeNumber(0), default=_STEPS, show_default=True, metavar="N",
              help="End each run after N steps; 0: run the script to its end.")  # fmt: skip
@click.option("--no-seed", is_flag=True, help="Do not set the seeds to 0 before the script.")
@click.option("--fail-if-slower", is_flag=True, help="Exit with code 3 if a change is slower.")
@json_option
@click.option("-o", "--output", "folder", metavar="DIR",
              help="Folder of captures, times and try.json; default: the script's name with the "
              "suffix .try.")  # fmt: skip
@click.option("-m", "module", is_flag=True, help="Run SCRIPT as a module, like python -m.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
@click.pass_context
def command(
    context: click.Context, /, command: tuple[str, ...], texts: tuple[str, ...],
    rounds: int, steps: int, folder: str | None,
    *, together: bool, listing: bool, no_seed: bool, fail_if_slower: bool, as_json: bool,
    module: bool,
) -> None:  # fmt: skip
    """Run SCRIPT with its ARGS with and without changes, in turn, and say what came of each.

    No file of yours is edited: a change patches torch in the process of a run. Each run is a fresh
    process; steps are timed without a profiler, warm-up left out, and losses are compared. One more
    run of each is profiled, and shows which kernels changed. Exits with 1 if the script fails
    without a change.

    \b
    Examples:
      pyprof try train.py --epochs 1
      pyprof try --change bf16 --change compile --steps 30 train.py
      pyprof try --change workers=4 --json -m project.train
      pyprof try --change patch=experiment.py train.py
    """
    from pyprof.capture import script  # noqa: PLC0415 - --help needs none of it
    from pyprof.commands._trial import perform_trial  # noqa: PLC0415 - as above
    from pyprof.trial.experiment import Trial  # noqa: PLC0415 - as above
    from pyprof.trial.ranks import Ranks  # noqa: PLC0415 - as above

    if listing:
        _list()
        return
    if not command:
        raise click.UsageError("Missing argument 'SCRIPT [ARGS]...'.")
    chosen = _parse_changes(texts)
    if command[0] == _LAUNCHER and not module and not Path(command[0]).exists():
        raise click.UsageError(
            f"{_LAUNCHER} starts pyprof try in each rank: {_LAUNCHER} --nproc-per-node N "
            "-m pyprof try SCRIPT"
        )
    target = script.Target(command[0], tuple(command[1:]), module=module)
    script.check(target)
    own = {name for option in context.command.params for name in option.opts if name[:2] == "--"}
    if behind := [text for text in target.args if text.partition("=")[0] in own]:
        say(f"{NOTE}{behind[0]} is an argument of the script, as it stands behind its name")
    trial = Trial(
        target=target,
        folder=Path(f"{target.label()}.try" if folder is None else folder),
        ranks=Ranks.here(),
        steps=steps,
        seed=not no_seed,
        report=lambda run: _progress(trial, run),
    )
    trial.begin()
    answer = perform_trial(trial, chosen, rounds, combine=together)
    if trial.ranks.first:
        _write(answer, trial.folder, as_json=as_json)
    if not answer.complete:
        context.exit(signals.INTERRUPTED)
    if fail_if_slower and any(each.verdict == "slower" for each in answer.changes):
        context.exit(_SLOWER)


def _parse_changes(texts: Sequence[str]) -> Sequence[Chosen]:
    """Parse the values of --change. Raises BadParameter."""
    from pyprof.trial.change import parse  # noqa: PLC0415 - --help needs none of it

    try:
        return tuple(dict.fromkeys(map(parse, texts)))
    except PyprofError as error:
        raise click.BadParameter(str(error), param_hint="'--change'") from None


def _list() -> None:
    from pyprof.render.text import formatting  # noqa: PLC0415 - only here
    from pyprof.trial.change import changes  # noqa: PLC0415 - as above

    rows = [
        (f"{name}={entry.takes}" if entry.takes else name, entry.help)
        for name, entry in changes().items()
    ]
    lines = formatting.table(rows, ("change", "what it does"), (0, 1))
    formatting.write(output_file.STDOUT, lines)


def _progress(trial: Trial, run: TrialRun) -> None:
    from pyprof.analysis.trial.timing import median_ns  # noqa: PLC0415 - it loads Arrow
    from pyprof.render.text import try_text  # noqa: PLC0415 - only now needed

    if trial.ranks.first:
        steps = run.result.step_ns
        say(try_text.run_line(run, median_ns(run.result, by_step=True) if steps else None))


def _write(answer: Try, folder: Path, *, as_json: bool) -> None:
    from pyprof import answers  # noqa: PLC0415 - it loads Arrow
    from pyprof.render.text import formatting, try_text  # noqa: PLC0415 - as above

    with signals.postponed():
        answers.write(str(folder / "try.json"), answer)
    if as_json:
        answers.write(output_file.STDOUT, answer)
        return
    formatting.write(output_file.STDOUT, try_text.trial(answer))
