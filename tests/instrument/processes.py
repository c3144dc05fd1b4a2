"""Scripts run as ranks of a distributed job, as processes on this machine."""

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path

from tests import forks

RANK = """
    import os, torch, torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    import pyprof
    from pyprof import marker
    from pyprof.instrument import lifecycle
    from pyprof.instrument.ranges import emit
    texts, depth = [], [0]
    def push(text): texts.append(text); depth[0] += 1
    def pop(): depth[0] -= 1
    lifecycle._SINKS["nvtx"] = lambda: emit.Sink(push, pop)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.FileStore(os.environ["STORE"], size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
"""
"""How scripts of ranks begin: in one group, with their ranges written down."""


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

    def start(rank: int) -> forks.Wait:
        command = [*(part.format(rank=rank) for part in under or by), str(script)]
        ours = environment | {"RANK": str(rank)}
        if under:
            return forks.start_cold(command, None, ours)
        return forks.start(*command, env=ours)

    done = [wait() for wait in [start(rank) for rank in ranks]]
    for process in done:
        assert process.returncode == 0, process.stderr
    return [process.stdout for process in done]
