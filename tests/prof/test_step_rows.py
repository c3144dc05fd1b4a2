"""Steps of rows, and their work by step and by phase."""

import numpy as np

from pyprof.prof.step_rows import StepRows, StepWork

STEPS = StepRows(
    np.array([0, 1, 1, -1]),
    phases=("prefill", "decode", "decode"),
    tokens=(100, 4, None),
    duration_ns=np.array([30, 5, 7]),
)


def test_each_step_has_its_tokens_and_duration() -> None:
    assert STEPS.by_step() == {0: StepWork(100, 30), 1: StepWork(4, 5), 2: StepWork(None, 7)}


def test_tokens_of_a_phase_are_unknown_if_one_step_states_none() -> None:
    assert STEPS.by_phase() == {"prefill": StepWork(100, 30), "decode": StepWork(None, 12)}


def test_training_steps_have_no_phase_and_no_tokens() -> None:
    training = StepRows(np.array([0, 1]), duration_ns=np.array([3, 4]))
    assert training.by_phase() == {}
    assert training.by_step() == {0: StepWork(None, 3), 1: StepWork(None, 4)}
