"""Steps of the script: when each ended, by light timers that never wait for the GPU."""

from __future__ import annotations

import itertools
import sys
import time
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.trial.script.outermost import Call

PYPROF_STEP = "pyprof.step()"
_MIN_SHARE = 1 / 8
"""An optimizer that steps more rarely than this, relative to the others, does not end steps."""
_MIN_ENDS = 3
"""Fewer ends bound no more than one step."""


class End(NamedTuple):
    """The end of a step."""

    ns: int
    event: Any
    """A CUDA event; None without CUDA."""
    compiled: int
    """How many frames torch.compile has compiled by then."""


class Steps:
    """Ends of steps as seen so far, by what ended them.

    `pyprof.step()` takes precedence, then the optimizer that steps least often, as a GAN's
    generator, then calls of the module that is called most often, as in inference.
    """

    def __init__(self, limit: int, reached: Callable[[], object]) -> None:
        self._limit, self._reached = limit, reached
        self._ends: dict[str, list[End]] = {}
        self._numbers: dict[int, str] = {}
        self._held: list[object] = []
        self.backward_called = False
        self._optimizer_made = False

    def install(self) -> None:
        """Note optimizers that are made, and their steps."""
        from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook  # noqa: PLC0415 - the user's own

        create = Optimizer.__init__

        @wraps(create)
        def init(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's
            self._optimizer_made = True
            create(optimizer, *args, **kwargs)

        Optimizer.__init__ = init  # type: ignore[method-assign,assignment]
        register_optimizer_step_post_hook(self.optimizer_stepped)
        self._count_skipped_steps()

    def _count_skipped_steps(self) -> None:
        """Count the steps of an optimizer that a GradScaler skips, too: the loop goes on."""
        import torch  # noqa: PLC0415 - the user's own

        step = torch.amp.GradScaler.step

        def scaled_step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's
            before = self._count(optimizer)
            result = step(scaler, optimizer, *args, **kwargs)
            if self._count(optimizer) == before:
                self.optimizer_stepped(optimizer)
            return result

        torch.amp.GradScaler.step = scaled_step  # type: ignore[method-assign,assignment]

    def _count(self, optimizer: object) -> int:
        return len(self._ends.get(self._name(optimizer, "optimizer"), ()))

    def step_called(self) -> None:
        """Note a `pyprof.step()`."""
        self._add_end(PYPROF_STEP)

    def optimizer_stepped(self, optimizer: object, *_: object) -> None:
        """Note an optimizer's step."""
        self._add_end(self._name(optimizer, "optimizer"))

    def module_called(self, call: Call, output: Any) -> Any:  # noqa: ANN401 - of the user's module
        """Note the call of a module with parameters; returns its output."""
        if next(call.module.parameters(), None) is not None:
            self._add_end(self._name(call.module, "call"))
        return output

    def _name(self, thing: object, kind: str) -> str:
        key = id(thing)
        if key not in self._numbers:
            self._numbers[key] = f"{kind} {len(self._numbers)} of {type(thing).__name__}"
            self._held.append(thing)  # so that no other gets its id
        return self._numbers[key]

    def _add_end(self, name: str) -> None:
        ends = self._ends.setdefault(name, [])
        ends.append(End(time.perf_counter_ns(), _cuda_event(), compiled_frames()))
        if self._limit and len(ends) >= self._limit:
            chosen = self.chosen()
            if self._optimizer_made and chosen.startswith("call"):
                return  # calls before training, such as an evaluation
            if len(self._ends.get(chosen, ())) >= self._limit:
                self._reached()

    def chosen(self) -> str:
        """Return what ends steps; "" if nothing was seen to end them."""
        if PYPROF_STEP in self._ends:
            return PYPROF_STEP
        optimizers = {k: len(v) for k, v in self._ends.items() if k.startswith("optimizer")}
        if optimizers:
            most = max(optimizers.values())
            often = {k: count for k, count in optimizers.items() if count >= _MIN_SHARE * most}
            return min(often, key=lambda name: often[name])
        if self.backward_called:
            return ""
        calls = {k: len(v) for k, v in self._ends.items()}
        return max(calls, key=lambda name: calls[name], default="")

    def lengths(self) -> tuple[str, list[float], list[bool]]:
        """Return what ends steps, the length of each in ns, and whether something was compiled."""
        name = self.chosen()
        ends = self._ends.get(name, [])
        if len(ends) < _MIN_ENDS:
            return "", [], []
        pairs = list(itertools.pairwise(ends))
        lengths = [_length(a, b) for a, b in pairs]
        return name, lengths, [b.compiled > a.compiled for a, b in pairs]


def _length(a: End, b: End) -> float:
    if a.event is None or b.event is None:
        return float(b.ns - a.ns)
    return float(a.event.elapsed_time(b.event) * 1e6)


def _cuda_event() -> Any:  # noqa: ANN401 - torch.cuda.Event
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return None
    event = cuda.Event(enable_timing=True)
    event.record()
    return event


def compiled_frames() -> int:
    """Return how many frames dynamo has compiled so far in this process."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return 0 if counters is None else int(counters["frames"]["total"])
