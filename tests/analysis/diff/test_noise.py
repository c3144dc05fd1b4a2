"""Planted shifts are found in noise; without one, nothing is in at least 95 % of seeds."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pyprof.analysis.diff import noise
from pyprof.analysis.diff.noise import Estimates
from pyprof.analysis.diff.side import summarise_side
from pyprof.arrays import Floats
from pyprof.inputs.source import load
from tests.analysis.diff.noisy import OPS, noisy, times
from tests.answers.checked import ask
from tests.builders import Range, Work, nsys_db
from tests.commands import printed, run

SEEDS = 2000
NS = 1e6
COUNTS = [(2, 2), (3, 3), (3, 10), (5, 5), (10, 40), (60, 60), (200, 200), (1000, 300)]


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return NS * (1 + 0.03 * rng.standard_normal(shape))


def _skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return NS * np.exp(0.1 * rng.standard_normal(shape))


def _with_slow_steps(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return NS * (1 + 0.02 * rng.standard_normal(shape) + 0.5 * (rng.random(shape) < 0.1))


def _rounded(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return np.asarray(np.rint(_normal(rng, shape) / RESOLUTION) * RESOLUTION)


RESOLUTION = 2e4


def _estimates(values: Floats, resolution: float = 0) -> Estimates:
    seeds, steps = values.shape
    thing, sample = np.divmod(np.arange(values.size), steps)
    return noise.estimates(thing, sample, values.ravel(), (seeds, steps), resolution)


def _agreement(a: Estimates, b: Estimates, shift: float = 0) -> tuple[float, float]:
    """Return how often a change is not significant, and its interval holds the shift."""
    half, p = noise.welch(a, b)
    return (p >= 0.05).mean(), (np.abs(b.value - a.value - shift) <= half).mean()


@pytest.mark.few(8)
@pytest.mark.parametrize("draw", [_normal, _skewed, _with_slow_steps, _rounded])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_no_shift_is_not_significant(draw: object, counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    a, b = (_estimates(draw(rng, (SEEDS, n)), RESOLUTION) for n in counts)  # type: ignore[operator]
    assert min(_agreement(a, b)) >= 0.95


@pytest.mark.parametrize(
    ("counts", "shift"),
    [((3, 3), 1.5), ((5, 5), 0.6), ((8, 8), 0.24), ((12, 12), 0.15), ((20, 20), 0.07)],
)
def test_a_shift_is_found(counts: tuple[int, int], shift: float) -> None:
    """If it is several times the noise, in at least 95 % of seeds, inside its interval."""
    rng = np.random.default_rng(7)
    a, b = (_normal(rng, (SEEDS, n)) for n in counts)
    missed, held = _agreement(_estimates(a), _estimates(b + shift * NS), shift * NS)
    assert (missed <= 0.05, held >= 0.95) == (True, True)


def _correlated(rng: np.random.Generator, shape: tuple[int, int], neighbours: float) -> Floats:
    """Return noise of variance 1 in which a step resembles the one before it (AR(1))."""
    values = rng.standard_normal(shape)
    for step in range(1, shape[1]):
        fresh = np.sqrt(1 - neighbours**2) * values[:, step]
        values[:, step] = neighbours * values[:, step - 1] + fresh
    return values


def _hidden(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return slow drift under as much noise of single steps, so that neighbours differ."""
    return _correlated(rng, shape, 0.8) + rng.standard_normal(shape)


def _warming(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return steps that grow or shrink over the run, each run by another slope."""
    return 4 * rng.standard_normal((shape[0], 1)) * np.linspace(0, 1, shape[1]) + (
        rng.standard_normal(shape)
    )


def _switching(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return steps at one of two clocks, which change every 20 steps."""
    high = np.cumsum(rng.random(shape) < 0.05, axis=1) + rng.integers(0, 2, (shape[0], 1))
    return 2.0 * (high % 2) + 0.3 * rng.standard_normal(shape)


DRIFTS = [
    ("alike 0.3", partial(_correlated, neighbours=0.3), (2, 3, 20, 60, 200)),
    ("alike 0.6", partial(_correlated, neighbours=0.6), (2, 3, 8, 10, 12, 20, 60, 200)),
    ("alike 0.8", partial(_correlated, neighbours=0.8), (2, 3, 5, 7, 8, 10, 12, 14)),
    ("alike 0.9", partial(_correlated, neighbours=0.9), (3, 5, 7, 20, 60, 200)),
    ("hidden", _hidden, (40, 60, 200)),
    ("warming", _warming, (200, 400)),
    ("switching", _switching, (60, 200)),
]


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("draw", "count"),
    [pytest.param(draw, n, id=f"{name}, {n}") for name, draw, counts in DRIFTS for n in counts],
)
def test_drift_is_not_a_change(draw: Callable[..., Floats], count: int) -> None:
    rng = np.random.default_rng(7)
    a, b = (_estimates(NS * (1 + 0.03 * draw(rng, (SEEDS, count)))) for _ in range(2))
    assert min(_agreement(a, b)) >= 0.95


def test_a_shift_is_found_in_spite_of_drift() -> None:
    """Effective samples are few, but not none."""
    rng = np.random.default_rng(7)
    a, b = (1 + 0.03 * _correlated(rng, (SEEDS, 100), 0.6) for _ in range(2))
    assert _agreement(_estimates(NS * a), _estimates(NS * (b + 0.12)))[0] <= 0.05


def test_samples_without_variance_are_certain() -> None:
    """Any difference is a change, unless the clock is too coarse."""
    a = _estimates(np.full((1, 3), NS))
    b = _estimates(np.full((1, 3), NS + 1))
    assert noise.welch(a, a)[1] == 1
    assert noise.welch(a, b)[1] == 0
    coarse = (_estimates(np.full((1, 3), each), 1000) for each in (NS, NS + 1))
    assert noise.welch(*coarse)[1] > 0.9


@pytest.mark.slow
def test_many_ops_without_a_change_have_no_significant_one() -> None:
    rng = np.random.default_rng(7)
    sizes = NS * rng.lognormal(0, 2, 200)
    clean = 0
    for _ in range(300):
        a, b = (
            _estimates(sizes[:, None] * (1 + 0.03 * rng.standard_normal((200, 6))))
            for _ in range(2)
        )
        p = noise.corrected(noise.welch(a, b)[1], a.value + b.value)
        clean += bool((p >= 0.05).all())
    assert clean >= 0.95 * 300


def test_a_large_op_is_not_lost_among_many_small_ones() -> None:
    """It takes half the time, so it is significant as if few ops were compared."""
    p, time = np.array([0.01, *[0.5] * 300]), np.array([300.0, *[1.0] * 300])
    assert noise.corrected(p, time)[0] == pytest.approx(0.02)
    assert noise.corrected(p, np.ones(301))[0] > 0.4


def test_the_correction_equals_one_worked_out_by_hand() -> None:
    """With equal weights it is that of Benjamini and Hochberg; a missing time is not a change."""
    equal = noise.corrected(np.array([0.01, 0.04, 0.03, 0.5]), np.ones(4))
    assert equal.tolist() == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert noise.corrected(np.array([0.0, 1.0]), np.array([1.0, 0.0])).tolist() == [0, 1]
    assert noise.corrected(np.zeros(0), np.zeros(0)).tolist() == []


@pytest.mark.parametrize(("tick", "resolution"), [(32, 32), (1000, 1000), (50_000, 1000), (1, 1)])
def test_the_clocks_resolution_is_the_common_divisor_of_times(
    tick: int, resolution: int, tmp_path: Path
) -> None:
    """As of a GPU's timer or old traces' microseconds; equal times alone show no resolution."""
    rng = np.random.default_rng(5)
    at, work = 1_234_567, []
    for _ in range(50):
        ns = tick * int(rng.integers(1, 9))
        work.append(Work("k", (at, at + ns)))
        at += ns + tick * int(rng.integers(1, 9))
    source = load(str(nsys_db(tmp_path / "a.sqlite", work, [Range("x", (0, 1))])))
    assert summarise_side(source, ("op",)).samples.resolution_ns == resolution


# --- from captures --------------------------------------------------------------------------------


def _pair(folder: Path, a: dict[str, list[int]], b: dict[str, list[int]]) -> tuple[Path, Path]:
    return noisy(folder / "a.sqlite", a), noisy(folder / "b.sqlite", b)


def _statuses(answer: dict[str, object]) -> dict[str, str]:
    return {change["key"]["op"]: change["status"] for change in answer["changes"]}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_planted_slowdown_is_the_only_one(seed: int, tmp_path: Path) -> None:
    """One op takes 10 % longer with noise of 2 %; it stands out from the others."""
    a, b = _pair(tmp_path, times(seed, 20, 0.02), times(seed + 100, 20, 0.02, gelu=1.1))
    answer = ask("diff", a, b)
    statuses = _statuses(answer)
    assert statuses["gelu"] == "slower"
    assert {statuses[name] for name in OPS} - {"slower"} <= {"same", "not significant"}
    (gelu,) = [change for change in answer["changes"] if change["key"]["op"] == "gelu"]
    assert gelu["low_ns"] < 20_000 < gelu["high_ns"]
    assert answer["noise"]["samples"] == "steps"
    assert answer["metrics"]["time_ns"]["significant"]


def test_noise_alone_is_not_a_change(tmp_path: Path) -> None:
    """The text says so, and it breaks a limit on size but none on significance."""
    a, b = _pair(tmp_path, times(1, 6, 0.1), times(2, 6, 0.1))
    limits = ("--fail-if", "slower>0%", "--fail-if", "significant", "--fail-if", "op>1%")
    assert "no significant change" in printed("diff", a, b, *limits)
    codes = {run("diff", *pair, "--fail-if", "time>0").code for pair in ((a, b), (b, a))}
    assert codes == {0, 3}


@pytest.mark.slow
def test_noise_is_unknown_for_one_step(tmp_path: Path) -> None:
    """A limit on size still applies; one on significance cannot be checked."""
    a, b = _pair(tmp_path, times(1, 1, 0.0), times(1, 1, 0.0, gelu=1.2))
    said = "noise is unknown: A and B have one step only"
    assert said in run("diff", a, b).stdout
    answer = ask("diff", a, b)
    assert answer["noise"]["why"] == "A and B have one step only"
    assert {change["p"] for change in answer["changes"]} == {None}
    assert answer["metrics"]["time_ns"]["low"] is None
    assert run("diff", a, b, "--fail-if", "slower>2%").code == 3
    done = run("diff", a, b, "--fail-if", "significant")
    assert (done.code, "cannot be checked: A and B have one step only" in done.stderr) == (1, True)


@pytest.mark.slow
def test_ranks_are_the_samples_of_a_single_step(tmp_path: Path) -> None:
    sides = []
    for side, factor in enumerate((1.0, 1.3)):
        folder = tmp_path / f"{side}"
        folder.mkdir()
        for rank in range(5):
            noisy(folder / f"net.rank{rank}.sqlite", times(10 * side + rank, 1, 0.02, gelu=factor))
        sides.append(folder)
    answer = ask("diff", *sides)
    assert (answer["noise"]["samples"], answer["noise"]["a_count"]) == ("ranks", 5)
    assert _statuses(answer)["gelu"] == "slower"
    assert answer["metrics"]["time_ns"]["change"] == pytest.approx(5 * 60_000, rel=0.1)


@pytest.mark.slow
def test_warm_up_is_left_out(tmp_path: Path) -> None:
    """A first step of ten times the length is in no mean, as in the summary."""
    taken = times(3, 6, 0.01)
    slow = {name: [10 * ns[0], *ns[1:]] for name, ns in taken.items()}
    a, b = _pair(tmp_path, taken, slow)
    answer = ask("diff", a, b)
    assert (answer["per_step"]["a_count"], answer["per_step"]["b_count"]) == (6, 5)
    assert answer["per_step"]["b_share"] == pytest.approx(1 / 3, rel=0.02)
    assert {change["status"] for change in answer["changes"]} <= {"same", "not significant"}
