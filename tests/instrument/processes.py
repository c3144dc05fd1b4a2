"""Scripts that run as the ranks of a distributed job, as processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def run(tmp_path: Path, code: str, *ranks: int, under: Sequence[str] = ()) -> list[str]:
    """Run a script as a process for each rank; give what each wrote.

    `under` is what runs it, Python if nothing else; `{rank}` in it stands for the rank.
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    environment = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "STORE": str(tmp_path / "store"),
        "MASTER_PORT": "0",
        "WORLD_SIZE": str(len(ranks)),
    }
    running = [
        subprocess.Popen(
            [*(part.format(rank=rank) for part in under or (sys.executable,)), str(script)],
            env=environment | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ranks
    ]
    found = []
    for process in running:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        found.append(out)
    return found
