"""What the names of the user's ranges mean: a part of the program, a direction, a step of a loop.

Frameworks write them in their own ways; a layer keeps its author's name for it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_LOOP = (
    r"(?:profiler|train(?:ing|er)?|eval(?:uation)?|test|val(?:idation)?|predict(?:ion)?|inference)"
)
_STEP = r"(?:global[\s_-]?)?(?:step|iteration|iter|batch|mini-?batch)s?"
_NUMBERED = r"(?:[\s_.:#=(\[-]*\d+.*)?"
_OF_FRAMEWORKS = (
    # Lightning
    r"\[pl\]\[profile\](?:\[\w+\])?run_(?:training|evaluation|predict\w*)_(?:batch|step)"
    r"|(?:Trainer\.)?(?:training_step|train_batch|_inner_training_step)"  # Hugging Face, DeepSpeed
    r"|(?:DeepSpeedEngine|PipelineEngine)\.(?:train_batch|eval_batch)"
    r"|execute_(?:new_|context_|\d+_).*"  # vLLM
    r"|step\[.*\]|run_batch"  # SGLang
    r"|(?:prefill|(?:eager_)?decode)\[bs=.*\]"  # ATOM
    r"|\[Executor\] _forward_step\b.*"  # TensorRT-LLM
)
# No two adjacent repetitions match the same text: that would take quadratic time.
_LOOP_STEP = rf"(?:{_LOOP}[\s_.:#-]*|_[\s_.:#-]*)?{_STEP}"
STEP_PATTERN = rf"(?i)^(?:layer:)?(?:\W*{_LOOP_STEP}{_NUMBERED}|{_OF_FRAMEWORKS})$"
"""Names of ranges around one step each, with or without its number; an RE2 pattern."""
_IS_STEP = re.compile(STEP_PATTERN.replace("(?i)", ""), re.IGNORECASE | re.DOTALL)
_STEP_NAME = re.compile(rf"\W*({_LOOP_STEP})", re.IGNORECASE)
_PROFILERS = re.compile(r"ProfilerStep")
_ENGINES = re.compile(r"(prefill|(?:eager_)?decode)\[bs=|(\[Executor\] _forward_step)\b")


STEP_END = "pyprof.step"
"""An empty range at the end of a step, which `pyprof.step()` pushes inside whatever is open."""


def is_step(text: str) -> bool:
    """Whether a range goes around one step of a loop."""
    return _IS_STEP.match(text) is not None


def step_name(text: str) -> str:
    """Name the loop of a step's range, without what differs between steps.

    "" for the profiler's own, which names no part of the program.
    """
    if _PROFILERS.match(text):
        return ""
    if text.startswith("execute_"):
        return "execute"
    if text.startswith("step["):
        return f"{text.partition(' ')[0].rstrip(']')}]"
    if match := _ENGINES.match(text):
        return match[1] or match[2]
    match = _STEP_NAME.match(text)
    return match[1].strip() if match else range_name(text)


_MODULE = re.compile(r"""\{['"]Module['"]: ['"]([^'"]*)['"]""")
_FSDP = re.compile(r"FSDP::(\w+)(?: \((.*)\))?$")
_WRAPPERS = re.compile(r"(?:^|\.)(?:_checkpoint_wrapped_module|_fsdp_wrapped_module|_orig_mod)\b")
_LIGHTNING = re.compile(r"^\[pl\](?:\[module\][^:]*: |\[\w+\](?:\[\w+\])?)")
_NUMBER = re.compile(r", (?:seq|op_id) = ")


def is_named_module(text: str) -> bool:
    """Whether it is one of vLLM's ranges, which name a module and describe its tensors."""
    return _MODULE.match(text) is not None


@lru_cache(maxsize=1 << 16)
def range_name(text: str) -> str:
    """Return the part of the program that a user's range names."""
    if module := _MODULE.match(text):
        return module[1]
    name = _NUMBER.split(text, maxsplit=1)[0]
    if match := _FSDP.match(name):
        module_path = _WRAPPERS.sub("", match[2] or "").removeprefix(".")
        return f"{module_path} (FSDP {match[1]})" if module_path else f"FSDP {match[1]}"
    if name.startswith("##") and name.endswith("##") and (inner := name.strip("# ")):
        return inner
    return _LIGHTNING.sub("", name).removeprefix("transformer_engine.").strip()


FORWARD, BACKWARD, OPTIMIZER = "fprop", "bprop", "optim"

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORDS = {
    **dict.fromkeys(("forward", "fwd", "fprop"), FORWARD),
    **dict.fromkeys(("backward", "bwd", "bprop", "backprop"), BACKWARD),
    **dict.fromkeys(("optimizer", "optim", "optimiser", "zerograd"), OPTIMIZER),
}
_TWO_WORDS = {("zero", "grad"): OPTIMIZER, ("feed", "forward"): "", ("feed", "fwd"): ""}
_PASS = re.compile(r"\((F|B|W)\)$")
_PASSES = {"F": FORWARD, "B": BACKWARD, "W": BACKWARD}


@lru_cache(maxsize=1 << 16)
def direction(name: str) -> str:
    """Return the direction in a range's name: fprop, bprop, optim; "" if none or several.

    `attn(F)` and `mlp(W)` are a pipeline's: forward, and the gradient of weights.
    """
    if match := _PASS.search(name):
        return _PASSES[match[1]]
    words = [word.lower() for word in _WORD.findall(name)]
    said = {_TWO_WORDS[pair] for pair in pairwise(words) if pair in _TWO_WORDS}
    said |= {
        _WORDS[word]
        for before, word in zip(["", *words], words, strict=False)
        if word in _WORDS and (before, word) not in _TWO_WORDS
    }
    said.discard("")
    return said.pop() if len(said) == 1 else ""
