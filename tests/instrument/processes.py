"""Scripts run as ranks of a distributed job, as processes on this machine."""

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path

from tests import forks


def run(
    tmp_path: Path, code: str, *ranks: int, under: Sequence[str] = (), by: Sequence[str] = ()
) -> list[str]:
    """Run a script as a process for each rank; return what each wrote.

    `under` is the program that runs it, Python if nothing else; `by` is what Python is to run it
    with, as -m and a module. `{rank}` in either stands for the rank.
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    environment = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "STORE": str(tmp_path / "store"),
        "MASTER_PORT": "0",
        "WORLD_SIZE": str(len(ranks)),
    }

    def start(rank: int) -> forks.Fork | forks.Cold:
        command = [*(part.format(rank=rank) for part in under or by), str(script)]
        ours = environment | {"RANK": str(rank)}
        if under:
            return forks.Cold.start(command, Path.cwd(), ours)
        return forks.start(*command, env=ours)

    done = [process.wait() for process in [start(rank) for rank in ranks]]
    for process in done:
        assert process.returncode == 0, process.stderr
    return [process.stdout for process in done]
