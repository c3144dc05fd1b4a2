"""Who wants to know when the range to capture starts, stops, and when a step ends.

The capture command starts and stops its profiler from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class RangeHooks:
    """Lists of callbacks without arguments, called in the order in which they were given."""

    def __init__(self) -> None:
        self._start: list[Callable[[], object]] = []
        self._stop: list[Callable[[], object]] = []
        self._step: list[Callable[[], object]] = []

    def on_start(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when `pyprof.profile()` is entered. Gives a function that takes this back."""
        return _add(self._start, callback)

    def on_stop(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when `pyprof.profile()` is left. Gives a function that takes this back."""
        return _add(self._stop, callback)

    def on_step(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back at each `pyprof.step()`. Gives a function that takes this back."""
        return _add(self._step, callback)

    def start(self) -> None:
        """Tell that the range to capture starts."""
        _call(self._start)

    def stop(self) -> None:
        """Tell that the range to capture stops."""
        _call(self._stop)

    def step(self) -> None:
        """Tell that a step ended."""
        _call(self._step)


def _add(
    callbacks: list[Callable[[], object]], callback: Callable[[], object]
) -> Callable[[], None]:
    callbacks.append(callback)

    def take_back() -> None:
        if callback in callbacks:
            callbacks.remove(callback)

    return take_back


def _call(callbacks: list[Callable[[], object]]) -> None:
    for callback in tuple(callbacks):
        callback()


range_hooks = RangeHooks()
