"""Nested calls as events of a torch.profiler trace without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.readers.kineto_json import Event, op

if TYPE_CHECKING:
    Clock = Callable[[str], float]


@dataclass
class Called:
    name: str
    sizes: list[Any]
    inside: tuple[Called, ...] = ()
    inputs: list[str] | None = None
    seq: int | None = None
    forward: int = 0
    dtypes: list[str] = field(default_factory=list)

    @property
    def args(self) -> dict[str, Any]:
        kinds = ["float" if size else "Scalar" for size in self.sizes]
        found = {"Input_Dims": self.sizes, "Input_type": self.dtypes or kinds}
        found["Concrete_Inputs"] = self.inputs or [""] * len(self.sizes)
        if self.seq is None:
            return found
        return found | {"Sequence_number": self.seq, "Fwd_thread_id": self.forward}


def call(name: str, sizes: list[Any], *inside: Called, **more: Any) -> Called:  # noqa: ANN401
    """Describe an op; bare names are ATen's."""
    return Called(name if "::" in name or "Backward" in name else f"aten::{name}",
                  sizes, inside, **more)  # fmt: skip


def events(calls: Iterable[Called], clock: Clock = lambda _: 10) -> list[Event]:
    """Write calls in turn; `clock` says how long each runs before, and after, inner ones."""
    return [event for event, _ in _events(calls, 0, clock)]


def _events(calls: Iterable[Called], now: float, clock: Clock) -> Iterator[tuple[Event, float]]:
    for each in calls:
        before = clock(each.name)
        found = list(_events(each.inside, now + before, clock))
        end = (found[-1][1] if found else now + before) + clock(each.name)
        yield op(each.name, now, end - now, External_id=round(now * 1000) + 1, **each.args), end
        yield from ((event, end) for event, _ in found)
        now = end + 1
