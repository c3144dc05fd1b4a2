"""CUDA graphs: captured once, replayed often. Each replayed kernel keeps its op, layer and line.

On a machine with an NVIDIA GPU:

    pyprof capture --tool nsys -o graph examples/cuda_graph.py
    pyprof summary --by layer graph.sqlite
    pyprof prof -c op,layer,via,flops,kernel graph.sqlite

The ops are called while a graph is captured, and never again: `pyprof.profile()` begins before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

import pyprof

if TYPE_CHECKING:
    from collections.abc import Callable

    Model = Callable[[torch.Tensor], torch.Tensor]


def graphed(model: nn.Module, like: torch.Tensor) -> Model:
    """Capture a call of the model by hand: later calls replay its kernels."""
    given = like.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answers: torch.Tensor = model(
            given
        )  # nothing runs yet, but here are the ops of all replays

    def replay(batch: torch.Tensor) -> torch.Tensor:
        given.copy_(batch)  # a graph reads and writes the memory that it was captured with
        graph.replay()
        return answers.clone()

    return replay


def warmed_up(call: Model, batch: torch.Tensor) -> None:
    """Let libraries allocate and choose kernels, on a stream of their own as torch asks."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call(batch)
    torch.cuda.current_stream().wait_stream(stream)


def main() -> None:
    """Replay a graph of ours, and those that torch.compile makes; compare both with the model."""
    if not torch.cuda.is_available():
        print("cuda_graph.py needs an NVIDIA GPU: there is none here to capture a graph on")
        return
    pyprof.init()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).cuda().half().eval()
    batches = torch.randn(4, 128, 256, device="cuda", dtype=torch.float16).unbind()
    compiled = torch.compile(model, mode="reduce-overhead")

    with torch.no_grad():
        warmed_up(model, batches[0])
        compiled(batches[0])  # compiles; its second call captures, those after it replay
        with pyprof.profile():
            replay = graphed(model, batches[0])
            for batch in batches:
                ours, theirs = replay(batch), compiled(batch).clone()
                pyprof.step()
        expected = model(batches[-1])
    same = (torch.allclose(found, expected, atol=1e-2) for found in (ours, theirs))
    print("same as in Python:", *same)


if __name__ == "__main__":
    main()
