"""What this machine has for captures: GPUs and Nsight Systems. Starts no CUDA in this process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from glob import glob
from pathlib import Path

_PLACES = (
    "/opt/nvidia/nsight-systems*/*/bin/nsys",
    "/opt/nvidia/nsight-systems*/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/local/bin/nsys",
)
_TIMEOUT_S = 30


def find_nsys() -> str | None:
    """Give the nsys on PATH, else the newest in the places where it is installed to; else None."""
    if found := shutil.which("nsys"):
        return found
    places = [path for pattern in _PLACES for path in glob(pattern)]  # noqa: PTH207 - absolute patterns
    usable = [path for path in places if os.access(path, os.X_OK)]
    return max(usable, key=numbers, default=None)


def nsys_version(nsys: str) -> tuple[int, ...] | None:
    """Give its version as numbers, such as (2024, 6, 1); None where it does not say."""
    said = output(nsys, "--version")
    found = re.search(r"(\d{4})\.(\d+)(?:\.(\d+))?", said or "")
    return tuple(int(part or 0) for part in found.groups()) if found else None


@cache
def gpus() -> tuple[str, ...]:
    """Give the names of the NVIDIA GPUs that a script started here would see."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1", "NoDevFiles"}:
        return ()
    said = output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    if said is not None:
        return tuple(line.strip() for line in said.splitlines() if line.strip())
    return tuple(path.name for path in sorted(Path("/dev").glob("nvidia[0-9]*")))


def output(program: str, *args: str) -> str | None:
    """Give what a program prints; None where it is not there or fails."""
    found = shutil.which(program)
    if found is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - a program of the user's own machine
            [found, *args], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def numbers(text: str) -> tuple[int, ...]:
    """Give the numbers in a path or version, in their order: what makes one newer than another."""
    return tuple(int(part) for part in re.findall(r"\d+", text))
