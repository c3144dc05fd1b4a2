"""The requests that one step of a serving framework works on, as the range around it states them.

vLLM and SGLang name a step `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_`
`37(sq37sk34489sqsq37sqsk34489)`: 9 requests in prefill and 37 in decode, and of each phase the sums
over its requests of the new tokens (sq), the tokens in the cache (sk), the squares of the former
(sqsq) and the products of both (sqsk). Older versions state the numbers of tokens alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_SUMS = r"\((?:sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)|\d+)\)"
STEP = re.compile(rf"execute_(?:\d+_)?context_(\d+){_SUMS}_generation_(\d+){_SUMS}$")
_STEPS = 1 << 12
_LONGEST = 18
"""Digits of a sum that fits int64."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Sums over the requests of one phase of a step."""

    requests: int = 0
    queries: int = 0
    keys: int = 0
    queries_squared: int = 0
    products: int = 0
    """Of queries and keys."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The requests of a step: those in prefill, and those in decode."""

    prefill: Phase
    decode: Phase

    @property
    def queries(self) -> int:
        """Count the new tokens."""
        return self.prefill.queries + self.decode.queries

    @property
    def keys(self) -> int:
        """Count the tokens whose keys and values are read."""
        return self.prefill.keys + self.decode.keys

    @property
    def twice_scores(self) -> int:
        """Give twice the number of scores of one head: of new tokens the causal triangle.

        A decoded token sees all keys; counted as an area, as everywhere in `attention`.
        """
        causal = 2 * self.prefill.products - self.prefill.queries_squared
        return causal + 2 * self.decode.products


@lru_cache(maxsize=_STEPS)
def read(text: str) -> Batch | None:
    """Give what the name of a step says of its requests; None where it states no sums."""
    stated = STEP.fullmatch(text)
    if stated is None or any(len(part or "") > _LONGEST for part in stated.groups()):
        return None
    first, second = stated.groups()[:5], stated.groups()[5:]
    phases = [_phase(part) for part in (first, second)]
    return Batch(*phases) if None not in phases else None  # type: ignore[arg-type]


def _phase(stated: tuple[str | None, ...]) -> Phase | None:
    requests, *sums = stated
    if None in sums:
        return Phase() if int(requests or 0) == 0 else None
    return Phase(int(requests or 0), *(int(number or 0) for number in sums))
