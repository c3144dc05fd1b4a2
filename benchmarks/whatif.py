"""Back-test of `pyprof whatif`: what it predicts from the first capture of a pair, and the second.

`python benchmarks/whatif.py FOLDER` prints a line per pair of the list below whose files are there,
and fails where a real time is not in its interval, or an error is larger than it was.
"""

import sys
from pathlib import Path
from typing import NamedTuple

from pyprof.analysis.whatif import predictions
from pyprof.analysis.whatif.prediction import Span
from pyprof.inputs import source


class Pair(NamedTuple):
    """Captures before and after one change, of the same work."""

    before: str
    after: str
    change: str


PAIRS = (Pair("sam/asdf_True_4488.json.gz", "sam/asdf_True_10b6.json.gz", "--fuse pointwise"),)


class Outcome(NamedTuple):
    """What was predicted, and what came true, ns."""

    pair: Pair
    predicted: Span
    real_ns: int

    @property
    def error(self) -> float:
        """How much longer than real the expected time is, by the real one."""
        return self.predicted.expected / self.real_ns - 1

    @property
    def covered(self) -> bool:
        """Whether the real time is in the interval."""
        return self.predicted.low <= self.real_ns <= self.predicted.high


def outcomes(folder: Path) -> list[Outcome]:
    """Predict each pair of a folder; raises LookupError where the change is refused."""
    there = [pair for pair in PAIRS if (folder / pair.before).exists()]
    return [_outcome(folder, pair) for pair in there]


def _outcome(folder: Path, pair: Pair) -> Outcome:
    before, after = (
        source.load(str(folder / name), host=False).table for name in (pair.before, pair.after)
    )
    predicted, refused = predictions(before, [pair.change])
    if refused:
        raise LookupError(f"{pair.before}: {refused[0].why}")
    return Outcome(pair, predicted[0].kernels_ns, int(after.duration_ns.sum()))


_LARGEST_ERROR = 0.06


def main(folder: Path) -> int:
    """Print all outcomes; return 1 if a rule got worse, or there is no pair."""
    tried = outcomes(folder)
    for each in tried:
        times = (each.predicted.low, each.predicted.expected, each.predicted.high, each.real_ns)
        low, expected, high, real = (f"{ns / 1e6:.0f}" for ns in times)
        print(
            f"{each.pair.change}: predicted {expected} ms [{low}, {high}], real {real} ms,"
            f" error {each.error:+.1%}, {'covered' if each.covered else 'not covered'}"
        )
    held = [each.covered and abs(each.error) <= _LARGEST_ERROR for each in tried]
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
