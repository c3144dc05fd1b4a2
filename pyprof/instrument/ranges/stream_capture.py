"""Whether a CUDA graph is being captured: then nothing may wait for the GPU, or time it."""

from __future__ import annotations

from typing import Any

import torch


def capturing() -> bool:
    """Whether the current stream is being captured into a graph."""
    cuda: Any = torch.cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())
