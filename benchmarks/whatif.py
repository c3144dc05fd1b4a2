"""Back-test of `pyprof whatif`: what it predicts of changes that were really made, and the errors.

`python benchmarks/whatif.py FOLDER` prints errors and coverage by change, and fails where a rule
got worse. With `--write` it also writes what the package says of its rules: their intervals and
outcomes (`back_test.json`), and the table of docs/whatif.md. FOLDER has pairs of captures and
NeuSight's measurements; captures beside it are `../captures`. Folders of `pyprof try` named after
it are further pairs: `python benchmarks/whatif.py FOLDER NAME.try...`.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import whatif_captures
import whatif_steps
import whatif_trials
from table import markdown
from whatif_outcome import MANY, Outcome, summary

from pyprof.analysis.back_test import RESULTS, Tried, results
from pyprof.analysis.whatif import batching, fusion, other_gpu, precision
from pyprof.quantities import change as relative_change
from pyprof.quantities import percent

DOCS = Path(__file__).resolve().parents[1] / "docs" / "whatif.md"
_BEGIN, _END = "<!-- back-test -->\n", "<!-- end -->\n"
_LARGEST = {fusion.POINTWISE: 0.11, precision.HALF_OUTCOMES: 0.07}
_MEAN = {fusion.POINTWISE: 0.06, other_gpu.OPTION: 0.08, batching.OPTION: 0.08}
_WITHIN_15_PERCENT = {other_gpu.OPTION: 0.88}
_COVERED = 0.85
_ON = {
    precision.TF32: "the products of {n} pairs of captures, in bfloat16",
    precision.HALF_OUTCOMES: "the {n} pairs of captures that its factors are from",
    fusion.ATTENTION: "kernels of {n} sizes in captures of 2 programs",
    fusion.POINTWISE: "{n} compiled programs",
    batching.OPTION: "{n:,} changes of the batch where grids fill the GPU",
    batching.LIMITED: "{n:,} changes of the batch where grids fill a T4 or L4",
    other_gpu.OPTION: "{n} changes of the GPU",
    other_gpu.LIMITED: "{n} changes of the GPU from or to T4 or L4",
    other_gpu.STAND_IN: "{n} changes of the GPU, to boards measured as another of their chip",
}
"""In the order of the table."""


def by_change(
    folder: Path, trials: Sequence[Path] = ()
) -> tuple[Mapping[str, Sequence[Outcome]], list[str]]:
    """Return all outcomes by change, and what got worse among pairs of captures."""
    found: dict[str, list[Outcome]] = defaultdict(list)
    worse = []
    for outcome, limit in whatif_captures.pairs(folder):
        found[outcome.change].append(outcome)
        print(f"{outcome.what}: error {relative_change(outcome.error)}")
        if abs(outcome.error) > limit:
            worse.append(
                f"{outcome.what}: error {relative_change(outcome.error)}, at most {percent(limit)}"
            )
    for rest in (
        whatif_captures.products(folder),
        whatif_captures.fused_attention(folder),
        whatif_steps.compiled(folder),
        whatif_steps.directions(folder),
        whatif_steps.batches(folder),
        whatif_steps.batches_of_ops(folder),
    ):
        for outcome in rest:
            found[outcome.change].append(outcome)
    for each in (each for trial in trials for each in whatif_trials.outcomes(trial)):
        if isinstance(each, Outcome):
            found[each.change].append(each)
            print(f"{each.what}: kernels, error {each.error:+.1%}")
        else:
            print(each if isinstance(each, str) else each.line)
    return found, worse


def summaries(found: Mapping[str, Sequence[Outcome]]) -> dict[str, Tried]:
    """Summarise them; one tried on one program is as uncertain as any on several steps."""
    on = {change: text.format(n=len(found[change])) for change, text in _ON.items()}
    alone = {change: summary(on[change], found[change]) for change in _ON}
    widest = alone[other_gpu.LIMITED].interval
    return {
        change: each if each.models > 1 else summary(on[change], found[change], widest)
        for change, each in alone.items()
    }


def complaints(tried: Mapping[str, Tried]) -> Iterator[str]:
    """Yield what got worse, by change."""
    for change, each in tried.items():
        if each.largest_error > _LARGEST.get(change, each.largest_error):
            yield f"{change}: largest error {percent(each.largest_error)}"
        if each.mean_error > _MEAN.get(change, each.mean_error):
            yield f"{change}: mean error {percent(each.mean_error)}"
        if each.within_15_percent < _WITHIN_15_PERCENT.get(change, 0):
            yield f"{change}: only {percent(each.within_15_percent)} within 15 %"
        if each.covered < _COVERED:
            yield f"{change}: only {percent(each.covered)} in the interval"


def table(tried: Mapping[str, Tried]) -> list[str]:
    """Return the lines of the table of the documentation."""
    errors = ["Mean error", "90 % within", "Largest", "Within 15 %"]
    header = ["Change", "Tried on", *errors, "Interval", "Covered"]
    rows = [
        [
            f"`{change}`", each.on, f"{percent(each.mean_error)}",
            f"{percent(each.nine_in_ten)}" if each.outcomes >= MANY else "",
            f"{percent(each.largest_error)}",
            f"{percent(each.within_15_percent)}", f"{each.low:.2f} to {each.high:.2f}",
            f"{percent(each.covered)}",
        ]
        for change, each in tried.items()
    ]  # fmt: skip
    return [*map(markdown, (header, ["---"] * len(header), *rows))]


def write(tried: Mapping[str, Tried]) -> None:
    """Write the results of the package, and the table of the documentation."""
    texts = {change: asdict(each) for change, each in tried.items()}
    RESULTS.write_text(json.dumps(texts, indent=1) + "\n", "utf-8")
    before, _, rest = DOCS.read_text("utf-8").partition(_BEGIN)
    lines = "".join(f"{line}\n" for line in table(tried))
    DOCS.write_text(f"{before}{_BEGIN}{lines}{_END}{rest.partition(_END)[2]}", "utf-8")


def main(folder: Path, trials: Sequence[Path] = (), *, writes: bool = False) -> int:
    """Print errors and coverage; return 1 if a rule got worse."""
    found, worse = by_change(folder, trials)
    tried = summaries(found)
    print("\n".join(table(tried)))
    if writes:
        write(tried)
    worse += complaints(tried)
    if tried != results() and not writes:
        worse.append("back_test.json is not what this says: run it with --write")
    print(*worse, sep="\n", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    paths = [Path(text) for text in sys.argv[1:] if text != "--write"]
    sys.exit(main(paths[0], paths[1:], writes="--write" in sys.argv))
