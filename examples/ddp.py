"""DistributedDataParallel: two processes that average their gradients, with gloo on the CPU.

    torchrun --nproc-per-node 2 -m pyprof.capture examples/ddp.py

writes one file per rank. Without torchrun, it runs as one process.
"""

from __future__ import annotations

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn

import pyprof


def connect(store: str) -> None:
    """Connect to the other processes of the launcher; without one, to a file of its own."""
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", init_method=f"file://{store}/store", rank=0, world_size=1)


def main() -> None:
    """Capture one step, which ends with the same gradient in each process."""
    pyprof.init()
    with tempfile.TemporaryDirectory() as store:
        connect(store)
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Linear(16, 4))
        batch = torch.full((8, 16), float(dist.get_rank() + 1))

        with pyprof.profile():
            model(batch).sum().backward()
        gradient = model.module.weight.grad
        print(f"gradient {gradient[0, 0].item():.1f}")
        dist.barrier()  # else Gloo's threads may still hold on to the backward pass as it goes
        del model  # as the last to hold the group it would wait for Gloo's thread, and that for it
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
