"""Numbers that count the operations on them, to write out a kernel's arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Operations:
    """How many operations were done."""

    count: int = 0


@dataclass(frozen=True)
class Counted:
    """A number that counts each operation on it."""

    value: float
    done: Operations = field(compare=False)

    def __add__(self, other: Counted) -> Counted:
        return self._result(self.value + other.value)

    def __sub__(self, other: Counted) -> Counted:
        return self._result(self.value - other.value)

    def __mul__(self, other: Counted | float) -> Counted:
        """Multiply by a number, or by a weight whose own cost is not counted."""
        return self._result(self.value * (other.value if isinstance(other, Counted) else other))

    def __truediv__(self, other: float) -> Counted:
        return self._result(self.value / other)

    def _result(self, value: float) -> Counted:
        self.done.count += 1
        return Counted(value, self.done)


def weights(y: float, x: float) -> tuple[float, float, float, float]:
    """Return the weights of the four neighbours of a position."""
    down, right = y % 1, x % 1
    return (1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right


def interpolated(corners: tuple[Counted, Counted, Counted, Counted], y: float, x: float) -> Counted:
    """Return the weighted sum of the four neighbours of a position."""
    first, *others = (corner * w for corner, w in zip(corners, weights(y, x), strict=True))
    for other in others:
        first += other
    return first
