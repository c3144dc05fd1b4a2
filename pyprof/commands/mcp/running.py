"""The tools that run a script, for clients that the user allows to."""

from __future__ import annotations

from typing import Annotated

from pyprof.commands.mcp.access import allowed
from pyprof.commands.mcp.bounds import Answer, bound, check_limit
from pyprof.commands.mcp.parameters import Limit  # noqa: TC001 - the server evaluates annotations
from pyprof.commands.mcp.registry import running_tool


@running_tool
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
