"""Numbers as a table shows them, read back."""

import re
from fractions import Fraction

_NUMBER = re.compile(
    r"(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<after>\d+))?(?:e(?P<power>[+-]\d+))?(?P<unit>[a-zA-Z]*)"
)
_UNITS = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9,
}  # fmt: skip


def read(text: str) -> tuple[Fraction, Fraction]:
    """Return a number in FLOPs, bytes or ns, and the size of its last digit."""
    found = _NUMBER.fullmatch(text)
    assert found is not None, text
    after = found["after"] or ""
    last = Fraction(10) ** (int(found["power"] or 0) - len(after)) * _UNITS[found["unit"]]
    value = int(found["whole"] + after) * last
    return (-value if found["sign"] else value), last


def within_shown(text: str, number: float) -> bool:
    value, last = read(text)
    return abs(value - Fraction(number)) <= last * Fraction(500_000_001, 10**9)
