"""Windows of a training loop to capture, as a schedule of torch.profiler tells them by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.autograd.profiler import record_function
from torch.profiler import ProfilerAction

if TYPE_CHECKING:
    from collections.abc import Callable

    Schedule = Callable[[int], ProfilerAction]


class Windows:
    """Starts and stops a recording by steps, and marks each step in it as torch.profiler does."""

    def __init__(
        self,
        schedule: Schedule,
        start: Callable[[], object],
        stop: Callable[[], object],
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        self._schedule = schedule
        self._start, self._stop, self._prepare = start, stop, prepare
        self._count = 0
        self._on = False
        self._mark: record_function | None = None
        self._enter()

    def step(self) -> None:
        """Tell that a step ended."""
        saved = self._schedule(self._count) is ProfilerAction.RECORD_AND_SAVE
        self._count += 1
        self._leave()
        if saved or not self._records():
            self._end()
        self._enter()

    def finish(self) -> None:
        """End the window, if one is on."""
        self._leave()
        self._end()

    def _records(self) -> bool:
        action = self._schedule(self._count)
        return action in {ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE}

    def _enter(self) -> None:
        if self._records():
            if not self._on:
                self._on = True
                self._start()
            self._mark = record_function(f"ProfilerStep#{self._count}")
            self._mark.__enter__()  # type: ignore[no-untyped-call]
        elif self._schedule(self._count) is ProfilerAction.WARMUP:
            self._prepare()

    def _leave(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def _end(self) -> None:
        if self._on:
            self._on = False
            self._stop()
