"""An inference loop: no gradients; `pyprof.step()` marks the end of each batch."""

from __future__ import annotations

import torch
from torch import nn

import pyprof


def main() -> None:
    """Run one batch to warm up, then capture three."""
    pyprof.init()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(device).eval()
    batches = torch.randn(4, 8, 16, device=device).unbind()

    with torch.inference_mode():
        model(batches[0])
        with pyprof.profile():
            for batch in batches[1:]:
                answers = model(batch)
                pyprof.step()
    print("answers", tuple(answers.shape))


if __name__ == "__main__":
    main()
