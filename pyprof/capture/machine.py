"""What this machine has and lacks for captures: torch, GPUs, Nsight Systems, rocprofv3.

Starts no CUDA in this process.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from functools import cache
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

_PLACES = (
    "/opt/nvidia/nsight-systems*/*/bin/nsys",
    "/opt/nvidia/nsight-systems*/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/local/bin/nsys",
)
"""Where nsys may be installed without being on PATH."""
_TIMEOUT_S = 30
"""Time limit of a program that only reports on itself or the machine."""


def find_nsys() -> str | None:
    """Return the nsys on PATH, else the newest in the usual places; else None."""
    return _find("nsys", _PLACES)


def find_rocprofv3() -> str | None:
    """Return the rocprofv3 on PATH, else that of the newest ROCm in its usual place; else None."""
    return _find("rocprofv3", ("/opt/rocm*/bin/rocprofv3",))


def _find(program: str, patterns: Iterable[str]) -> str | None:
    if on_path := shutil.which(program):
        return on_path
    places = [path for pattern in patterns for path in glob(pattern)]  # noqa: PTH207 - absolute patterns
    usable = [path for path in places if os.access(path, os.X_OK)]
    return max(usable, key=version_numbers, default=None)


def has_amd_gpu() -> bool:
    """Whether an AMD GPU is visible to a script started here."""
    hidden = {"", "-1", "NoDevFiles"}
    variables = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    if any(os.environ.get(name) in hidden for name in variables):
        return False
    return Path("/dev/kfd").exists()


def nsys_version(nsys: str) -> tuple[int, ...] | None:
    """Return the version as numbers, such as (2024, 6, 1); None if unknown."""
    output_text = output(nsys, "--version")
    match = re.search(r"(\d{4})\.(\d+)(?:\.(\d+))?", output_text or "")
    return tuple(int(part or 0) for part in match.groups()) if match else None


@cache
def find_gpus() -> tuple[str, ...]:
    """Return the names of the NVIDIA GPUs visible to a script started here."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1", "NoDevFiles"}:
        return ()
    listing = output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    if listing is not None:
        return tuple(line.strip() for line in listing.splitlines() if line.strip())
    return tuple(path.name for path in sorted(Path("/dev").glob("nvidia[0-9]*")))


def output(program: str, *args: str) -> str | None:
    """Return a program's output; None if it is missing or fails."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - a program of the user's own machine
            [path, *args], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in a path or version, in order, for comparison."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


class State(Enum):
    """How good a finding is."""

    GOOD = "ok"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked."""

    state: State
    text: str
    remedy: str = ""
    """What to do, if possible a command; empty if nothing needs to be done."""

    def __str__(self) -> str:
        arrow = f"\n{'':6}-> {self.remedy}" if self.remedy else ""
        return f"{self.state.value:<6}{self.text}{arrow}"


_NSYS_INSTALL = "https://developer.nvidia.com/nsight-systems (or apt install nsight-systems-cli)"
_SILENT_NVTX = (2022, 4, 99)
"""Up to this nsys, the nvtx package from 0.2.12 on emits nothing: it asks whether its domain is
enabled, which that nsys does not answer."""


def findings() -> Iterator[Finding]:
    """Check this machine, from Python outwards."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield Finding(State.GOOD, f"pyprof {__version__}, Python {version}")
    cuda = yield from _torch()
    gpus = find_gpus()
    if not gpus and has_amd_gpu():
        if path := find_rocprofv3():
            yield Finding(State.GOOD, f"an AMD GPU, and rocprofv3 at {path}")
        else:
            text = "an AMD GPU, but rocprofv3 is not installed: captures use torch.profiler"
            yield Finding(State.NOTE, text, "install rocprofiler-sdk of ROCm 7")
    else:
        yield from _gpus(gpus, cuda)
        yield from _nsys(gpus, cuda)
    yield from _counters()


def _torch() -> Generator[Finding, None, str | None]:
    """Check torch; return the CUDA version that it was built for, or None."""
    version = _installed_version("torch")
    if version is None:
        yield Finding(State.BAD, "torch is not installed in this Python", "pip install torch")
        return None
    try:
        import torch  # noqa: PLC0415 - the user's own, and slow to import
    except (ImportError, OSError) as error:
        remedy = "pip install --force-reinstall torch"
        yield Finding(State.BAD, f"torch {version} cannot be imported: {error}", remedy)
        return None
    cuda = torch.version.cuda or torch.version.hip
    build = f"built for {'CUDA' if torch.version.cuda else 'ROCm'} {cuda}" if cuda else "CPU build"
    yield Finding(State.GOOD, f"torch {version}, {build}")
    return torch.version.cuda


def _gpus(gpus: tuple[str, ...], cuda: str | None) -> Iterator[Finding]:
    if not gpus:
        text = "no NVIDIA GPU is visible: captures time ops on the CPU (--tool torch)"
        yield Finding(State.NOTE, text)
        return
    names = ", ".join(f"{gpus.count(name)} x {name}" for name in sorted(set(gpus)))
    yield Finding(State.GOOD, names)
    if cuda is None:
        remedy = "install a CUDA build of torch: https://pytorch.org/get-started"
        yield Finding(State.BAD, "torch cannot use the GPU: it is a build without CUDA", remedy)
        return
    driver = re.search(r"CUDA Version: (\d+)\.(\d+)", output("nvidia-smi") or "")
    if driver and int(driver[1]) < int(cuda.partition(".")[0]):
        text = f"the driver supports CUDA {driver[1]}.{driver[2]}, torch needs CUDA {cuda}"
        remedy = "update the driver, or install a torch build for the older CUDA"
        yield Finding(State.BAD, text, remedy)


def _nsys(gpus: tuple[str, ...], cuda: str | None) -> Iterator[Finding]:
    path = find_nsys()
    if path is None:
        state = State.BAD if gpus else State.NOTE
        yield Finding(state, "nsys is not installed: captures use torch.profiler", _NSYS_INSTALL)
        return
    version = nsys_version(path)
    release = ".".join(str(part) for part in version) if version else "of unknown version"
    yield Finding(State.GOOD, f"nsys {release} at {path}")
    if not _importer_is_found(path):
        yield Finding(
            State.BAD,
            "nsys cannot find its importer: a capture would leave only a .qdstrm file",
            "link host-linux-x64 in the nsight-systems folder of /usr/lib to the folder "
            "nsight-systems beside nsys' own target files",
        )
    nvtx = _installed_version("nvtx")
    is_silent = version is not None and version <= _SILENT_NVTX
    if cuda is None and is_silent and nvtx and version_numbers(nvtx) >= (0, 2, 12):
        text = (
            f"under nsys {release}, ranges of the nvtx package {nvtx} are lost (PyProf's are not)"
        )
        yield Finding(State.NOTE, text, "pip install nvtx==0.2.11, or a newer nsys")


def _importer_is_found(nsys: str) -> bool:
    """Whether nsys finds its importer, which Debian's package installs elsewhere."""
    debian = Path("/usr/lib/nsight-systems/host-linux-x64")
    if not debian.is_dir() or not Path(nsys).resolve().is_relative_to("/usr/lib"):
        return True
    return any(Path("/usr/lib").glob("*-linux-gnu/nsight-systems/host-linux-x64"))


def _counters() -> Iterator[Finding]:
    """Check the privileges that hardware counters need; tracing needs none."""
    params = Path("/proc/driver/nvidia/params")
    try:
        restricted = "RmProfilingAdminOnly: 1" in params.read_text(encoding="utf-8")
    except OSError:
        return
    if restricted:
        yield Finding(
            State.NOTE,
            "hardware counters (ncu, nsys --gpu-metrics-device) need root here; captures do not",
            "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reboot",
        )


def _installed_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
