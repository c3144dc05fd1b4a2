"""FLOPs of some 900 op calls on the CPU, captured again and again, against an oracle of their own.

    python benchmarks/flop_sweep.py [--runs 2] [--loaded 2] [--only TEXT] [--plain]

Each run is a capture of its own by `pyprof capture --tool torch`, or by torch.profiler alone; the
loaded ones share the machine with a process that never rests. A call is wrong where its FLOPs are
neither the oracle's nor what docs/numbers.md says of it, a silent zero where it computed and no row
says anything, and unsteady where two runs differ in a row. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import flop_cases
import flop_conventions
import flop_oracle

import pyprof

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flop_cases import Case

_SCRIPT = str(Path(flop_cases.__file__))
_ASIDE = 0.001
_SPIN = "while True: pass"
_NOWHERE = subprocess.DEVNULL


class Found(NamedTuple):
    """What a capture says of a call: name, FLOPs, reason and bytes of each row."""

    rows: tuple[tuple[str, int | None, str, int | None], ...]

    @property
    def flops(self) -> int:
        """Add up what is known."""
        return sum(flops or 0 for _, flops, *_ in self.rows)

    @property
    def unknown(self) -> set[str]:
        """Return the reasons of unknown costs; a stopped call computed nothing."""
        reasons = {why for _, flops, why, _ in self.rows if flops is None}
        return {why for why in reasons if not why.startswith("stopped: ")}


def found(trace: Path) -> dict[str, Found]:
    """Return what a trace holds of each case."""
    raw = trace.read_bytes()
    events = json.loads(gzip.decompress(raw) if trace.suffix == ".gz" else raw)
    base = int(events.get("baseTimeNanoseconds", 0))
    spans = {
        event["name"].removeprefix("layer:"): (event["ts"] * 1000, event["dur"] * 1000)
        for event in events["traceEvents"]
        if event.get("ph") == "X" and "case " in event["name"][:11]
    }
    rows = pyprof.load(trace).sort_values("start")
    starts = rows["start"].to_numpy() - base
    return {
        name: _rows(rows[(starts >= start) & (starts < start + length)])
        for name, (start, length) in spans.items()
    }


def _rows(rows: Any) -> Found:  # noqa: ANN401 - a frame
    columns = (rows[name] for name in ("kernel", "flops", "why", "bytes"))
    values = (column.astype(object).where(column.notna(), None) for column in columns)
    return Found(tuple((k, f, w or "", b) for k, f, w, b in zip(*values, strict=True)))


def expected(case: Case) -> tuple[set[int | None], set[str]]:
    """Return what a call's FLOPs may be, None for unknown; and the ops that no rule counts.

    That is what docs/numbers.md says of it, or the sum of its ops where only those were recorded.
    """
    known = flop_conventions.BACKWARD if case.backward else flop_conventions.FORWARD
    flops, without = flop_oracle.flops(flop_cases.prepared(case))
    counted: set[int | None] = set() if without else {flops}
    if case.source not in known:
        return counted, without
    wanted = known[case.source]
    return {wanted} | (counted if wanted is not None else set()), set()


def verdict(case: Case, runs: Sequence[Found]) -> tuple[str, str]:
    """Judge a call by all runs: return a word, and a sentence."""
    if any(run != runs[0] for run in runs):
        return "unsteady", " / ".join(str(run.flops) for run in runs)
    if any(flops is None and not why for _, flops, why, _ in runs[0].rows):
        return "unknown without a reason", str(runs[0].rows)
    wanted, without = expected(case)
    if without:
        return "no oracle", ", ".join(sorted(without))
    run = runs[0]
    if any(_equal(flops, None if run.unknown else run.flops) for flops in wanted):
        return "right", ""
    spelt = " or ".join("unknown" if flops is None else str(flops) for flops in wanted)
    if run.unknown:
        return "unknown", f"{', '.join(sorted(run.unknown))}; is {spelt}"
    return ("wrong" if run.flops else "silent zero"), f"{run.flops}, is {spelt}"


def judged(cases: Iterable[Case], runs: Sequence[Mapping[str, Found]]) -> Counter[str]:
    """Judge each case that is in all runs; print those that are not right."""
    counts: Counter[str] = Counter()
    for case in cases:
        if not all(case.name in run for run in runs):
            print(f"{case.name} {case.source}: not captured")
            continue
        word, said = verdict(case, [run[case.name] for run in runs])
        counts[word] += 1
        if word != "right":
            print(f"{case.name} {case.source}: {word}: {said}")
    return counts


def _equal(wanted: int | None, flops: int | None) -> bool:
    """Compare, ignoring quotients and comparisons of single numbers."""
    if wanted is None or flops is None:
        return wanted is flops
    return abs(flops - wanted) <= _ASIDE * wanted


@contextmanager
def _load(*, heavy: bool) -> Iterator[None]:
    busy = subprocess.Popen([sys.executable, "-c", _SPIN]) if heavy else None  # noqa: S603 - ours
    try:
        yield
    finally:
        if busy is not None:
            busy.kill()
            busy.wait()


def captured(folder: Path, number: int, only: str, *, plain: bool, heavy: bool) -> Path:
    """Capture the cases once; return the trace."""
    script = [_SCRIPT, "--only", only]
    if plain:
        path = folder / f"{number}.json"
        command = [sys.executable, *script, "--trace", str(path)]
    else:
        path = folder / f"{number}.pt.trace.json.gz"
        capture = ["-m", "pyprof", "capture", "--all", "--tool", "torch"]
        command = [sys.executable, *capture, "-o", str(folder / str(number)), *script]
    with _load(heavy=heavy):
        subprocess.run(command, check=True, stdout=_NOWHERE, stderr=_NOWHERE)  # noqa: S603 - ours
    return path


def main() -> None:
    """Sweep, print what is not right and how many calls there are of each verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2, help="captures on a machine at rest")
    parser.add_argument("--loaded", type=int, default=2, help="captures beside a busy process")
    parser.add_argument("--only", default="", help="cases whose line holds this")
    parser.add_argument("--plain", action="store_true", help="torch.profiler without PyProf")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [case for case in flop_cases.cases() if options.only in case.source]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.runs + options.loaded):
            heavy = number >= options.runs
            trace = captured(Path(folder), number, options.only, plain=options.plain, heavy=heavy)
            runs.append(found(trace))
    counts = judged(chosen, runs)
    print(f"{counts.total()} calls in {len(runs)} captures:", dict(counts))
    sys.exit(counts.keys() - {"right", "no oracle"} != set())


if __name__ == "__main__":
    main()
