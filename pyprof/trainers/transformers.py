"""A callback for Hugging Face's Trainer: `Trainer(..., callbacks=[PyprofCallback()])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from pyprof.trainers.training_range import ACTIVE, WAIT, TrainingRange

if TYPE_CHECKING:
    from transformers import TrainerControl


class PyprofCallback(TrainerCallback):
    """Mark each training step, and after `wait` of them `active` as the range to capture.

    A step is one of the optimizer, with all the batches that it accumulates. The set-up, evaluation
    and saving are left out. Run the script with `pyprof capture` or `pyprof run`, or `train` in a
    `with pyprof.profile("train") as p:`.
    """

    def __init__(self, wait: int = WAIT, active: int = ACTIVE) -> None:
        self._range = TrainingRange(wait, active)

    def on_step_begin(self, *_: Any, **__: Any) -> None:  # noqa: ANN401, D102 - the Trainer's
        self._range.step_begins()

    def on_step_end(self, _args: Any, _state: Any, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401, D102
        self._range.step_ended()
        self._interrupt(control)

    def on_epoch_end(self, _args: Any, _state: Any, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401, D102
        self._interrupt(control)

    def on_train_end(self, *_: Any, **__: Any) -> None:  # noqa: ANN401, D102
        self._range.interrupt()

    on_prediction_step = on_train_end  # an evaluation begins without a callback

    def _interrupt(self, control: TrainerControl) -> None:
        if control.should_evaluate or control.should_save:
            self._range.interrupt()
