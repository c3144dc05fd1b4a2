"""The ratio of a change's times to the baseline's, with its interval."""

import numpy as np
import pytest

from pyprof.analysis.trial.timing import steady_steps, timing
from pyprof.trial.experiment import BASELINE
from pyprof.trial.run_files import RunResult
from tests.known import known
from tests.trial.built import CHANGE, in_turn, runs


def _noisy(random: np.random.Generator, mid: float, spread: float, steps: int = 17) -> list[float]:
    run = mid * np.exp(random.normal(0, spread))
    return list(run * np.exp(random.normal(0, 0.02, steps)))


@pytest.mark.parametrize(
    ("step_ns", "compiling", "steady"),
    [
        ([90, 50, 40, 10, 80, 11, 12, 13, 14, 15], (4,), [10, 11, 12, 13, 14, 15]),
        ([90, 10, 11], (), [10, 11]),
    ],
    ids=["of a long run", "most of a short run"],
)
def test_warm_up_and_compiling_steps_are_left_out(
    step_ns: list[float], compiling: tuple[int, ...], steady: list[float]
) -> None:
    flags = [place in compiling for place in range(len(step_ns))]
    assert steady_steps(RunResult(step_ns=step_ns, compiling=flags)).tolist() == steady


def test_batches_that_come_in_pairs_are_timed_by_their_mean() -> None:
    """Two loader workers deliver two batches at once: a long step, then a short one."""
    found = known(timing(in_turn([[10.0] * 35] * 3, [[10.0, 0.1] * 17] * 4), CHANGE))
    assert found.ratio.mid == pytest.approx(0.505, rel=0.01)
    assert found.ratio.high < 0.6


def test_a_change_that_halves_the_time_has_a_narrow_interval_around_a_half() -> None:
    random = np.random.default_rng(0)
    a = [_noisy(random, 10, 0.01) for _ in range(3)]
    b = [_noisy(random, 5, 0.01) for _ in range(4)]
    found = known(timing(in_turn(a, b), CHANGE))
    assert found.ratio.low < 0.5 < found.ratio.high
    assert found.ratio.high - found.ratio.low < 0.1


def test_slow_drift_cancels_between_the_baselines_around_a_change() -> None:
    """Every run takes 10 % longer than the one before, with and without the change."""
    order = [BASELINE, CHANGE, CHANGE, BASELINE, CHANGE, CHANGE, BASELINE]
    found = known(timing(runs(*((v, [1.1**k] * 9) for k, v in enumerate(order))), CHANGE))
    assert found.ratio.mid == pytest.approx(1)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_about_one_in_twenty_changes_without_effect_seems_to_have_one(spread: float) -> None:
    """As the interval's level says, on quiet and busy machines."""
    random = np.random.default_rng(1)
    missed = 0
    for _ in range(300):
        a = [_noisy(random, 10, spread) for _ in range(3)]
        b = [_noisy(random, 10, spread) for _ in range(4)]
        found = known(timing(in_turn(a, b), CHANGE))
        missed += not found.ratio.low <= 1 <= found.ratio.high
    assert missed <= 0.07 * 300


def test_whole_runs_are_compared_without_steps() -> None:
    order = [BASELINE, CHANGE, CHANGE, BASELINE]
    bare = runs(*((variant, []) for variant in order))
    for run, wall_ns in zip(bare, [100, 50, 51, 101], strict=True):
        run.result.wall_ns = wall_ns
    found = known(timing(bare, CHANGE))
    assert found.ratio.mid == pytest.approx(0.5, rel=0.02)


def test_a_change_without_runs_has_no_times() -> None:
    assert timing(runs((BASELINE, [1, 1, 1])), CHANGE) is None
