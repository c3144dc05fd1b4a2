"""A callback for Lightning: `Trainer(callbacks=[PyprofCallback()])`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyprof.trainers.training_range import ACTIVE, WAIT, TrainingRange

if TYPE_CHECKING:
    from lightning.pytorch import Callback
else:  # the older name of the same package is another class
    older = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
    try:
        Callback = import_module("pytorch_lightning" if older else "lightning.pytorch").Callback
    except ModuleNotFoundError:
        Callback = import_module("pytorch_lightning").Callback


class PyprofCallback(Callback):
    """Mark each training step, and after `wait` of them `active` as the range to capture.

    The set-up, the sanity check and validation are left out. Run the script with `pyprof capture`
    or `pyprof run`, or `fit` in a `with pyprof.profile("fit") as p:`.
    """

    def __init__(self, wait: int = WAIT, active: int = ACTIVE) -> None:
        self._range = TrainingRange(wait, active)

    def on_train_batch_start(self, *_: Any, **__: Any) -> None:  # noqa: ANN401, D102 - Lightning's
        self._range.step_begins()

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:  # noqa: ANN401, D102
        self._range.step_ended()

    def on_validation_start(self, *_: Any) -> None:  # noqa: ANN401, D102
        self._range.interrupt()

    on_train_end = on_exception = on_validation_start
