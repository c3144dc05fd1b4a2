"""The range to capture in a trainer's loop: some steps, without what lies between them."""

from __future__ import annotations

from contextlib import ExitStack

import pyprof

WAIT = 5
"""Default number of steps before the range: the first ones load and choose kernels, fill caches."""
ACTIVE = 5


class TrainingRange:
    """A range that starts with a step, and pauses while the trainer does something else.

    If a run ends before `wait` steps, no range starts: `pyprof capture` then keeps everything.
    """

    def __init__(self, wait: int = WAIT, active: int = ACTIVE) -> None:
        if wait < 0 or active < 1:
            raise ValueError(
                f"wait={wait}, active={active}: skip 0 steps or more, capture 1 or more"
            )
        self._begin, self._end = wait, wait + active
        self._count = 0
        self._open = ExitStack()
        self._on = False

    def step_begins(self) -> None:
        """Continue the range, if this step is to be captured."""
        if not self._on and self._begin <= self._count < self._end:
            self._on = True
            self._open.enter_context(pyprof.profile())

    def step_ended(self) -> None:
        """Mark the step; end the range after the last."""
        self._count += 1
        pyprof.step()
        if self._count == self._end:
            self.interrupt()

    def interrupt(self) -> None:
        """End the range until the next step: for validation, saving, or the end of training."""
        self._on = False
        self._open.close()
