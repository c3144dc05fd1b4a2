"""The nsys options behind `pyprof capture --metrics`: samples of the GPUs' counters."""

from __future__ import annotations

import os
from typing import NamedTuple

from pyprof.capture import machine
from pyprof.capture.request import rank

_OPTIONS = ("--gpu-metrics-devices", "--gpu-metrics-device")
"""The name since 2024.2, and the one before."""
_VISIBLE, _ALL = "cuda-visible", "all"
_REFUSED = ("ERR_NVGPUCTRPERM", "privilege")
RIGHTS = (
    "the driver lets only root read counters (ERR_NVGPUCTRPERM): see docs/counters.md for the fix"
)


class Metrics(NamedTuple):
    """Options that sample metrics; none if impossible."""

    options: tuple[str, ...]
    note: str | None = None
    """Why it is impossible."""


def metrics(nsys: str) -> Metrics:
    """Ask nsys which GPUs it can sample: asked for any other, it ends at once."""
    options = machine.output(nsys, "profile", "--help") or ""
    option = next((name for name in _OPTIONS if f"{name}=" in options), None)
    if option is None:
        return Metrics((), "no GPU metrics: this nsys cannot sample them; install a newer one")
    listing = machine.output(nsys, "profile", f"{option}=help") or ""
    if any(word in listing for word in _REFUSED):
        return Metrics((), f"no GPU metrics: {RIGHTS}")
    device = _device(listing)
    if device is None:
        return Metrics((), "no GPU metrics: nsys can sample none of these GPUs (Turing and later)")
    return Metrics((f"{option}={device}",))


def _device(listing: str) -> str | None:
    """Choose the GPUs: a rank's own, since only one nsys can sample a GPU."""
    offered = {line.split(":", 1)[0].strip() for line in listing.splitlines() if ":" in line}
    local = os.environ.get("LOCAL_RANK", "")
    if rank() is not None and local in offered:
        return local
    return next((choice for choice in (_VISIBLE, _ALL) if choice in offered), None)
