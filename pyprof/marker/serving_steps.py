"""Parses the ranges of serving engines around one execution of the model.

vLLM: `execute_8192_context_9(sq8155sk8430...)_generation_37(sq37sk34489...)`: tokens with padding,
then requests in prefill and in decode with the sums of their tokens. SGLang:
`step[EXTEND bs=15 toks=15360]`, or with sums `step[DECODE bs=64 g_sq=128 ...]`. ATOM:
`prefill[bs=2 tok=14721 ctx=[7803, 6918]]`, `decode[bs=117/128 tok=117 d=117]`: of 128 requests
that its graph was captured for. TensorRT-LLM:
`[Executor] _forward_step 7: 1 ctx reqs, 300 ctx tokens, 32 gen reqs`.
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
    """prefill, decode or mixed; "" if unknown."""
    tokens: int | None = None
    """Number of tokens without padding."""
    padded: int | None = None
    """Number of tokens with the padding of its graph; None if unknown."""
    batch: int | None = None
    """Size by which its CUDA graph is chosen: tokens of vLLM, padded if it says; SGLang's requests.

    None if unknown, or if no graph is captured for it.
    """


_TOO_LONG = re.compile(r"\d{19}")
"""A number that may not fit int64, which no engine writes."""

_SUMS = r"(?:\((?:sq)?(\d*)[^)]*\))?"
_VLLM = re.compile(rf"execute_(?:(\d+)_)?context_(\d+){_SUMS}_generation_(\d+){_SUMS}")
_VLLM_OLD = re.compile(r"execute_new_(\d+)_cached_(\d+)")
_SGLANG = re.compile(r"step\[(\w+)\b([^\]]*)")
_SGLANG_PHASES = {"DECODE": DECODE, "EXTEND": PREFILL, "PREFILL": PREFILL, "MIXED": MIXED}
_ATOM = re.compile(r"(prefill|(?:eager_)?decode)\[bs=(\d+)(?:/(\d+))?\b(.*)\]$")
_TRTLLM = re.compile(
    r"\[Executor\] _forward_step(?: \d+)?: (\d+) ctx reqs, (?:(\d+) ctx tokens, )?(\d+) gen reqs"
)
_STATED = re.compile(r"\b(\w+)=(\d+)")


@lru_cache(maxsize=1 << 16)
def serving_step(text: str) -> ServingStep | None:
    """Parse the range around a serving engine's step; None for any other text."""
    if _TOO_LONG.search(text):
        return None
    matches = ((form.match(text), read) for form, read in _FORMS)
    return next((read(*match.groups()) for match, read in matches if match), None)


def stated(text: str) -> dict[str, int]:
    """Return the numbers of `bs=2 toks=14721` by their names."""
    return {name: int(number) for name, number in _STATED.findall(text)}


_PHASES = {(True, True): MIXED, (True, False): PREFILL, (False, True): DECODE}
"""Keys: whether there are requests in prefill, and in decode."""


def _of_vllm(
    padded: str | None, prefills: str, prefilled: str, decodes: str, decoded: str
) -> ServingStep:
    tokens = int(prefilled) + int(decoded) if prefilled and decoded else None
    phase = _PHASES.get((int(prefills) > 0, int(decodes) > 0), "")
    computed = int(padded) if padded else None
    return ServingStep(phase, tokens, computed, computed or tokens or None)


def _of_sglang(mode: str, text: str) -> ServingStep:
    phase, numbers = _SGLANG_PHASES.get(mode.upper(), ""), stated(text)
    requests = numbers.get("bs")
    sums = [numbers[name] for name in ("c_sq", "g_sq") if name in numbers]
    counted = sum(sums) if sums else requests if phase == DECODE else None
    batch = requests if phase != PREFILL else None
    return ServingStep(phase, numbers.get("toks", counted), batch=batch or None)


def _of_atom(name: str, batch: str, graph: str | None, text: str) -> ServingStep:
    """`p` counts requests in prefill of a decode step; each request may decode several tokens."""
    numbers = stated(text)
    tokens, requests = numbers.get("tok"), int(batch)
    if name == "prefill":
        return ServingStep(PREFILL, tokens)
    phase = MIXED if numbers.get("p") else DECODE
    if name != "decode":  # without a graph
        return ServingStep(phase, tokens)
    size = int(graph) if graph else requests
    each, rest = divmod(tokens, requests) if tokens and requests else (0, 0)
    padded = each * size if graph and each and not rest else None
    return ServingStep(phase, tokens, padded, size or None)


def _of_trtllm(prefills: str, prefilled: str | None, decodes: str) -> ServingStep:
    """Older versions do not count the tokens of a prefill."""
    requests, decoded = int(prefills), int(decodes)
    phase = _PHASES.get((requests > 0, decoded > 0), "")
    new = int(prefilled) if prefilled else 0 if not requests else None
    return ServingStep(phase, None if new is None else new + decoded)


_FORMS = (
    (_VLLM, _of_vllm),
    (
        _VLLM_OLD,
        lambda new, cached: ServingStep((MIXED if int(cached) else PREFILL) if int(new) else ""),
    ),
    (_SGLANG, _of_sglang),
    (_ATOM, _of_atom),
    (_TRTLLM, _of_trtllm),
)
