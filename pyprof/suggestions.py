"""What a word that we do not have may stand for: another profiler's word, or a mistyped one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_COMMANDS = {
    "diff": ("compare", "comparison"),
    "doctor": ("check", "verify", "validate"),
    "export": ("convert",),
    "lines": ("source", "hotspots"),
    "memory": ("snapshot", "mem"),
    "prof": ("kernels", "ops", "table", "key_averages"),
    "report": ("html", "page", "timeline", "view", "show"),
    "run": ("profile",),
    "capture": ("record", "trace"),
    "summary": ("steps", "idle", "overview", "stats", "info", "mfu", "analyze", "analyse"),
}
_COLUMNS = {
    "sil": ("time", "duration", "dur", "ns", "gpu_time", "cuda_time", "self_cuda_time_total"),
    "total": ("time", "duration", "sil", "gpu_time", "cuda_time", "cuda_time_total"),
    "calls": ("count", "number"),
    "cpu_self": ("cpu", "cpu_time", "host", "self_cpu", "self_cpu_time_total"),
    "cpu_total": ("cpu_time_total",),
    "ai": ("intensity", "arithmetic_intensity"),
    "bound": ("limit", "limiter"),
    "dir": ("direction", "pass"),
    "eff": ("efficiency", "utilization", "roofline"),
    "gbs": ("bandwidth", "gb/s"),
    "kernel": ("name", "kernel_name"),
    "line": ("source", "file"),
    "layer": ("modules", "nn_module"),
    "params": ("shape", "shapes", "size", "sizes"),
    "tc": ("tensor", "tensorcore", "tensorcores", "tensor_cores", "tensor_core"),
    "tflops": ("gflops", "flop/s", "tflop/s"),
    "trace": ("stack", "backtrace"),
    "why": ("reason",),
}

CHOSEN_BY = ("op", "kernel", "layer", "line", "dir", "family", "mod", "tc", "bound", "eff",
             "params", "step", "phase", "rank", "stream", "device", "sil")  # fmt: skip
"""Columns commonly used in conditions."""


def resolve(typed: str, names: Collection[str]) -> str | None:
    """Return the name that an alias stands for; None if it is not an alias."""
    every = (*_COMMANDS.items(), *_COLUMNS.items())
    return next((name for name, others in every if typed in others and name in names), None)


def suggestion(wrong: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'sil'?` for a mistyped name; "" if none of the names is similar.

    Ignores case. A synonym goes before a name of the same letters, that before a similar one.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only for what is wrong

    typed = wrong.lower()
    by_lower = {name.lower(): name for name in reversed(list(names))}
    if (named := resolve(typed, by_lower)) is not None:
        return f"; did you mean {by_lower[named]!r}?"
    swapped = [name for name in by_lower if sorted(name) == sorted(typed)]
    nearest = next(iter([*swapped, *get_close_matches(typed, by_lower, n=1)]), None)
    return f"; did you mean {by_lower[nearest]!r}?" if nearest is not None else ""
