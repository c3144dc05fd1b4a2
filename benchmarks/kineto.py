"""How fast, and in how much memory, a large torch.profiler trace is read.

    python benchmarks/kineto.py TRACE.json[.gz] [--megabytes 500]

Repeats a real trace, each time with later times and other ids, until the file has the size;
reads it with pyprof.readers.kineto and with json.load, each in a process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

IDS = ("External id", "correlation", "Ev Idx", "external id", "Python id", "Python parent id")
BYTES = 1e6


def enlarged(source: Path, target: Path, size: int) -> int:
    """Write a trace of at least `size` bytes out of a real one; return its number of events."""
    raw = source.read_bytes()
    trace: dict[str, Any] = json.loads(gzip.decompress(raw) if source.suffix == ".gz" else raw)
    events: list[dict[str, Any]] = trace.pop("traceEvents")
    begun = [event["ts"] for event in events if "ts" in event]
    length = max(begun) - min(begun) + 1000
    step = 1 + max(e["args"][key] or 0 for e in events for key in IDS if key in e.get("args", {}))
    written = rounds = 0
    with target.open("w", encoding="utf-8") as out:
        written += out.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
        while written < size or not rounds:
            for event in events:
                separator = ",\n" if rounds or event is not events[0] else ""
                written += out.write(separator + json.dumps(shifted(event, rounds, length, step)))
            rounds += 1
        out.write("\n]}")
    return rounds * len(events)


def shifted(event: dict[str, Any], rounds: int, length: float, step: int) -> dict[str, Any]:
    """Return an event as it would be in a later round."""
    moved = dict(event)
    if "ts" in event:
        moved["ts"] = round(event["ts"] + rounds * length, 3)
    if isinstance(event.get("id"), int):
        moved["id"] = event["id"] + rounds * step
    if "args" in event:
        ids = {k: v + rounds * step for k, v in event["args"].items() if k in IDS and v is not None}
        moved["args"] = event["args"] | ids
    return moved


def measured(reader: str, path: Path) -> tuple[float, float, float]:
    """Read the file in a process of its own; return seconds, CPU seconds, peak memory in MB."""
    command = [sys.executable, __file__, str(path), "--reader", reader]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this file
    seconds, cpu, peak = done.stdout.split()
    return float(seconds), float(cpu), float(peak)


def read(reader: str, path: Path) -> None:
    """Read the file here; print seconds, CPU seconds and the growth of peak memory in MB."""
    from pyprof.readers import kineto  # noqa: PLC0415 - counted before, not in the figures

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun, cpu = time.perf_counter(), time.process_time()
    if reader == "json":
        with path.open("rb") as file:
            kept: object = json.load(file)
    else:
        kept = kineto.read(path)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(seconds, cpu, peak / 1000, end="")
    del kept


def main() -> None:
    """Make the file, read it both ways, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--reader", choices=("json", "pyprof"))
    options = parser.parse_args()
    if options.reader:
        read(options.reader, options.trace)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.json"
        events = enlarged(options.trace, path, int(options.megabytes * BYTES))
        size = path.stat().st_size / BYTES
        print(f"{options.trace.parent.name}: {size:.0f} MB, {events} events")
        for reader in ("pyprof", "json"):
            seconds, cpu, peak = measured(reader, path)
            print(
                f"{reader:7} {seconds:6.1f} s, {size / seconds:6.1f} MB/s "
                f"({size / cpu:.1f} MB a second of CPU time), "
                f"{peak:6.0f} MB more memory ({peak / size:.1f} times the file)"
            )


if __name__ == "__main__":
    main()
