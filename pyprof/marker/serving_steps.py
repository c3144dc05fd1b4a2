"""Parses the ranges of serving engines around one execution of the model.

vLLM: `execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489...)`:
tokens with padding, then requests in prefill and in decode, and of each phase the sums over its
requests of the new tokens (sq), the tokens in the cache (sk), the squares of the former (sqsq) and
the products of both (sqsk). Older versions state the numbers of tokens alone.

SGLang: `step[EXTEND bs=15 toks=15360]`, or the same sums where it is asked to: `step[MIXED bs=5 c=2
g=3 c_sq=6144 c_sk=7144 ... g_sq=3 ...]`, with the phase's requests in `bs` where there is one.

ATOM: `prefill[bs=2 tok=14721 ctx=[7803, 6918]]`, `decode[bs=117/128 tok=117 d=117 sqsq=117
sqsk=239616 sk=239616]`: of 128 requests that its graph was captured for.

TensorRT-LLM: `[Executor] _forward_step 7: 1 ctx reqs, 300 ctx tokens, 32 gen reqs`.
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
    """Size by which its CUDA graph is chosen: vLLM's tokens, padded if recorded; SGLang's requests.

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


_STATED_SUMS = r"\((?:sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)|\d+)\)"
_VLLM_SUMS = re.compile(
    rf"execute_(?:\d+_)?context_(\d+){_STATED_SUMS}_generation_(\d+){_STATED_SUMS}$"
)
_SGLANG_SUMS = re.compile(r"step\[(EXTEND|DECODE|MIXED) (?=[^\]]*_sqsk=\d)([^\]]*)\]")
_ATOM_SUMS = re.compile(r"(prefill|(?:eager_)?decode)\[(?=bs=\d.*\bsqsk=\d)(.*)\]")


@dataclass(frozen=True, slots=True)
class Phase:
    """Sums over the requests of one phase of a step."""

    requests: int = 0
    queries: int = 0
    keys: int = 0
    queries_squared: int = 0
    products: int = 0
    """Sum of the products of queries and keys."""


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
    return any(form.fullmatch(text) for form in (_VLLM_SUMS, _SGLANG_SUMS, _ATOM_SUMS))


@lru_cache(maxsize=1 << 12)
def read_requests(text: str) -> Batch | None:
    """Parse the sums in the name of a step; None if it states none."""
    if _TOO_LONG.search(text):
        return None
    if match := _VLLM_SUMS.fullmatch(text):
        phases = [_vllm_phase(*match.groups()[at : at + 5]) for at in (0, 5)]
        return Batch(*phases) if None not in phases else None  # type: ignore[arg-type]
    if match := _SGLANG_SUMS.fullmatch(text):
        return _sglang_batch(match[1], stated(match[2]))
    if match := _ATOM_SUMS.fullmatch(text):
        # If a step decodes next to a prefill, its sums cover both phases and cannot be split.
        numbers = stated(match[2])
        phase = _sums(numbers, "", numbers.get("bs"), numbers.get("tok"))
        if phase is None or numbers.get("p"):
            return None
        return Batch(phase, Phase()) if match[1] == "prefill" else Batch(Phase(), phase)
    return None


def _vllm_phase(requests: str, *sums: str | None) -> Phase | None:
    if None in sums:
        return Phase() if int(requests) == 0 else None
    return Phase(int(requests), *(int(number or 0) for number in sums))


def _sglang_batch(mode: str, numbers: dict[str, int]) -> Batch | None:
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


_CAPTURE = re.compile(r"capture_(\d+)_(\w+)")
_DIGITS = 18


def captured(text: str) -> tuple[int, str] | None:
    """Return batch size and mode from the range around the capture of a graph; else None."""
    match = _CAPTURE.fullmatch(text.strip())
    return (int(match[1]), match[2]) if match and len(match[1]) <= _DIGITS else None


def chosen(size: int, captured: tuple[int, ...]) -> int | None:
    """Return the size of the graph that runs a batch: the smallest that has room, or None."""
    return min((other for other in captured if other >= size), default=None)
