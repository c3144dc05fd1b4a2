"""The requests of one step of a serving framework, parsed from its range's name.

vLLM names a step `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_`
`37(sq37sk34489sqsq37sqsk34489)`: 9 requests in prefill and 37 in decode, and of each phase the sums
over its requests of the new tokens (sq), the tokens in the cache (sk), the squares of the former
(sqsq) and the products of both (sqsk). Older versions state the numbers of tokens alone.

SGLang states the same sums where it is asked to: `step[MIXED bs=5 c=2 g=3 c_sq=6144 c_sk=7144 ...
g_sq=3 ...]`, with the phase's requests in `bs` where there is one; ATOM for a step of one phase:
`decode[bs=117/128 tok=117 d=117 sqsq=117 sqsk=239616 sk=239616]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pyprof.marker.serving_steps import stated

_SUMS = r"\((?:sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)|\d+)\)"
_VLLM = re.compile(rf"execute_(?:\d+_)?context_(\d+){_SUMS}_generation_(\d+){_SUMS}$")
_SGLANG = re.compile(r"step\[(EXTEND|DECODE|MIXED) (?=[^\]]*_sqsk=\d)([^\]]*)\]")
_ATOM = re.compile(r"(prefill|(?:eager_)?decode)\[(?=bs=\d.*\bsqsk=\d)(.*)\]")
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
        """Twice the number of scores of one head: for new tokens, those of the causal triangle.

        A decoded token attends to all keys; counted as an area, as everywhere in `attention`.
        """
        causal = 2 * self.prefill.products - self.prefill.queries_squared
        return causal + 2 * self.decode.products


def states_requests(text: str) -> bool:
    """Whether the name of a step states its requests, with or without their sums."""
    return any(form.fullmatch(text) for form in (_VLLM, _SGLANG, _ATOM))


@lru_cache(maxsize=_STEPS)
def read(text: str) -> Batch | None:
    """Parse the sums in the name of a step; None if it states none."""
    if _TOO_LONG.search(text):
        return None
    if match := _VLLM.fullmatch(text):
        phases = [_of_vllm(*match.groups()[at : at + 5]) for at in (0, 5)]
        return Batch(*phases) if None not in phases else None  # type: ignore[arg-type]
    if match := _SGLANG.fullmatch(text):
        return _of_sglang(match[1], stated(match[2]))
    if match := _ATOM.fullmatch(text):
        # A step that decodes next to a prefill only has sums of both phases, which are of no use
        numbers = stated(match[2])
        phase = _sums(numbers, "", numbers.get("bs"), numbers.get("tok"))
        if phase is None or numbers.get("p"):
            return None
        return Batch(phase, Phase()) if match[1] == "prefill" else Batch(Phase(), phase)
    return None


_TOO_LONG = re.compile(rf"\d{{{_LONGEST + 1}}}")


def _of_vllm(requests: str, *sums: str | None) -> Phase | None:
    if None in sums:
        return Phase() if int(requests) == 0 else None
    return Phase(int(requests), *(int(number or 0) for number in sums))


def _of_sglang(mode: str, numbers: dict[str, int]) -> Batch | None:
    """A step of one phase states its requests as `bs`, which may stand for its new tokens, too."""
    requests = numbers.get("bs")
    prefill: Phase | None = Phase()
    decode: Phase | None = Phase()
    if mode == "EXTEND":
        prefill = _sums(numbers, "c_", requests, numbers.get("toks"))
    elif mode == "DECODE":
        decode = _sums(numbers, "g_", requests, requests)
    else:
        prefill = _sums(numbers, "c_", numbers.get("c"))
        decode = _sums(numbers, "g_", numbers.get("g"))
    return None if prefill is None or decode is None else Batch(prefill, decode)


def _sums(
    numbers: dict[str, int], prefix: str, requests: int | None, queries: int | None = None
) -> Phase | None:
    queries = numbers.get(f"{prefix}sq", queries)
    sums = (requests, queries, *(numbers.get(f"{prefix}{name}") for name in ("sk", "sqsq", "sqsk")))
    return None if None in sums else Phase(*sums)  # type: ignore[arg-type]
