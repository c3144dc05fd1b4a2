"""Traces of torch.profiler beside a JSON parser; what starting costs; what a small trace costs.

`BENCH_MB=500` makes each trace so large (default: 100); `BENCH_TRACES` is where the real ones are.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from processes import PYTHON, Cost, cheapest
from table import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRACES = Path(__file__).parents[1] / ".." / "shared" / "captures"
_SMALL = "kineto-h100-vit-inference"
_JSON = "import json, sys; kept = json.load(open(sys.argv[1], 'rb'))"
_RUNS, _RUNS_SMALL = 2, 7
_IDS = ("External id", "correlation", "Ev Idx", "external id", "Python id", "Python parent id")


def rows() -> Iterator[Row]:
    """Measure starting, the small trace, then each large one; only starting without traces."""
    yield from _starting()
    traces = sorted(Path(os.environ.get("BENCH_TRACES", _TRACES)).glob("kineto-*/*.json.gz"))
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            if trace.parent.name == _SMALL:
                yield from _small(trace, Path(folder))
        for trace in traces:
            yield _large(trace, Path(folder))


def _starting() -> Iterator[Row]:
    bare = cheapest([PYTHON, "-c", "pass"], _RUNS_SMALL)
    for work, arguments in (
        ("import pyprof", ["-c", "import pyprof"]),
        ("pyprof --help", ["-m", "pyprof", "--help"]),
    ):
        ours = cheapest([PYTHON, *arguments], _RUNS_SMALL)
        yield _row(work, "python -c pass", bare, ours, ours.cpu_s / bare.cpu_s, "≤ 0.08 s")


def _small(trace: Path, folder: Path) -> Iterator[Row]:
    """Measure what a trace of 1.2 MB costs, packed as it is; a JSON parser reads it unpacked."""
    plain = folder / "small.json"
    _enlarge(trace, plain, 1)
    bare = cheapest([PYTHON, "-c", _JSON, str(plain)], _RUNS_SMALL)
    for verb, out, aim in (("parse", "out.dict", "≤ 0.4 s"), ("report", "out.html", "≤ 1.0 s")):
        command = [PYTHON, "-m", "pyprof", verb, "-q", "-o", str(folder / out)]
        ours = cheapest([*command, str(trace)], _RUNS_SMALL)
        ratio = ours.cpu_s / bare.cpu_s
        yield _row(f"{verb} of {_SMALL}, 1.2 MB", "json.load", bare, ours, ratio, aim)


def _large(trace: Path, folder: Path) -> Row:
    """Measure the speed of parse; that of a JSON parser is 1."""
    path, out = folder / "large.json", folder / "large.parquet"
    _enlarge(trace, path, int(os.environ.get("BENCH_MB", "100")) * 1_000_000)
    size_mb = path.stat().st_size / 1e6
    bare = cheapest([PYTHON, "-c", _JSON, str(path)], _RUNS)
    command = [PYTHON, "-m", "pyprof", "parse", "-q", "-o", str(out), str(path)]
    ours = cheapest(command, _RUNS)
    work = f"parse of {trace.parent.name}, {size_mb:.0f} MB"
    aim = f"≥ 1.5, ≤ {2.2 * size_mb:.0f} MB"
    return _row(work, "json.load", bare, ours, bare.cpu_s / ours.cpu_s, aim)


def _row(work: str, limit: str, bare: Cost, ours: Cost, ratio: float, aim: str) -> Row:
    return Row(
        work, f"{limit}, {bare.cpu_s:.2f} s", f"{ours.cpu_s:.2f} s", ratio, ours.memory_mb, aim
    )


def _enlarge(source: Path, target: Path, size: int) -> None:
    """Repeat a real trace, with later times and other ids each time, up to a number of bytes."""
    raw = source.read_bytes()
    trace: dict[str, Any] = json.loads(gzip.decompress(raw) if source.suffix == ".gz" else raw)
    events: list[dict[str, Any]] = trace.pop("traceEvents")
    begun = [event["ts"] for event in events if "ts" in event]
    length = max(begun) - min(begun) + 1000
    step = 1 + max(e["args"][key] or 0 for e in events for key in _IDS if key in e.get("args", {}))
    written = rounds = 0
    with target.open("w", encoding="utf-8") as out:
        written += out.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
        while written < size or not rounds:
            for event in events:
                separator = ",\n" if rounds or event is not events[0] else ""
                written += out.write(separator + json.dumps(_shifted(event, rounds, length, step)))
            rounds += 1
        out.write("\n]}")


def _shifted(event: dict[str, Any], rounds: int, length: float, step: int) -> dict[str, Any]:
    """Return an event as it would be in a later round."""
    moved = dict(event)
    if "ts" in event:
        moved["ts"] = round(event["ts"] + rounds * length, 3)
    if isinstance(event.get("id"), int):
        moved["id"] = event["id"] + rounds * step
    if "args" in event:
        ids = {
            k: v + rounds * step for k, v in event["args"].items() if k in _IDS and v is not None
        }
        moved["args"] = event["args"] | ids
    return moved
