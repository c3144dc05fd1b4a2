"""What serving engines write on the range around one execution of the model.

vLLM: `execute_8192_context_9(sq8155sk8430...)_generation_37(sq37sk34489...)`: tokens with padding,
then requests in prefill and in decode with the sums of their tokens. SGLang:
`step[EXTEND bs=15 toks=15360]`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

PREFILL, DECODE, MIXED = "prefill", "decode", "mixed"


@dataclass(frozen=True, slots=True)
class ServingStep:
    """One execution of the model."""

    phase: str
    """prefill, decode or mixed; "" where the text does not say."""
    tokens: int | None = None
    """Tokens that it works on, without padding."""
    padded: int | None = None
    """Tokens that it computes, with those that fill up its graph; None where it does not say."""
    batch: int | None = None
    """Size by which its CUDA graph is chosen: tokens of vLLM, padded if it says; SGLang's requests.

    None where the text does not say, or where no graph is captured for it.
    """


_TOO_LONG = re.compile(r"\d{19}")
"""A number that may not fit int64: no engine writes it."""

_VLLM = re.compile(
    r"execute_(?:(\d+)_)?context_(\d+)\((?:sq)?(\d*)[^)]*\)_generation_(\d+)\((?:sq)?(\d*)[^)]*\)"
)
_VLLM_OLD = re.compile(r"execute_new_(\d+)_cached_(\d+)")
_SGLANG = re.compile(r"step\[(\w+)\b(?: bs=(\d+))?(?: toks=(\d+))?")
_SGLANG_PHASES = {"DECODE": DECODE, "EXTEND": PREFILL, "PREFILL": PREFILL, "MIXED": MIXED}


@lru_cache(maxsize=1 << 16)
def serving_step(text: str) -> ServingStep | None:
    """Give what the range around a serving engine's step says; None for any other text."""
    if _TOO_LONG.search(text):
        return None
    if match := _VLLM.match(text):
        return _of_vllm(*match.groups())
    if match := _VLLM_OLD.match(text):
        new, cached = map(int, match.groups())
        return ServingStep((MIXED if cached else PREFILL) if new else "")
    if match := _SGLANG.match(text):
        return _of_sglang(*match.groups())
    return None


def _of_vllm(
    padded: str | None, prefills: str, prefilled: str, decodes: str, decoded: str
) -> ServingStep:
    phases = {(True, True): MIXED, (True, False): PREFILL, (False, True): DECODE}
    tokens = int(prefilled) + int(decoded) if prefilled and decoded else None
    phase = phases.get((int(prefills) > 0, int(decodes) > 0), "")
    computed = int(padded) if padded else None
    return ServingStep(phase, tokens, computed, computed or tokens or None)


def _of_sglang(mode: str, requests: str | None, tokens: str | None) -> ServingStep:
    phase = _SGLANG_PHASES.get(mode.upper(), "")
    counted = tokens or (requests if phase == DECODE else None)
    batch = int(requests) if requests and phase != PREFILL else None
    return ServingStep(phase, int(counted) if counted else None, batch=batch or None)
