"""Whether a kernel used Tensor Cores, by its full name, with the rule that says so.

The only sure answer is a hardware counter; the rules are what such counters and achieved rates
confirmed for families of names. If a name cannot tell, the answer is `?`, not no.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pyprof.gpu.kernel_dtypes import FIRST_TENSOR_CORES, HALF, NARROW, name_types, tensor_core_takes
from pyprof.gpu.kernel_names import by_name, split
from pyprof.gpu.kernel_roles import HELPERS, MATRIX_ROLES, role
from pyprof.gpu.tensorcore_rules import RULES, Rule, Verdict

USED, NOT_USED, UNKNOWN, NOT_APPLICABLE = "1", "0", "?", "-"

SEVERAL_PIPES = frozenset({10, 11})
"""Major compute capabilities of GPUs whose counters count tcgen05 in a pipe of its own, `tc`."""


class TensorCore(NamedTuple):
    """The verdict on one kernel name."""

    value: str
    """`1` used, `0` not used, `?` the name cannot tell, `-` no arithmetic that could use them."""
    rule: str
    """`family: reason`; the family is stable and names a line of the rule table."""
    dtype: str | None
    """Input type in the name, in torch's words or `tf32`; None if it names none."""
    accumulate: str | None = None
    """Type of the sum in the name, if any: `float16` has its own peak on some GPUs."""


_RULES = tuple((rule, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES)
_YES = tuple((rule, pattern) for rule, pattern in _RULES if rule.verdict is Verdict.YES)
_INDUCTOR_LOOPS = re.compile(r"^triton_(?:poi|red|per|for|split_scan|spl)_")
_AMD = re.compile(r"^Cijk_|mfma|(?<![a-z])xdl|ck_tile|_gtcx\d?_", re.IGNORECASE)


@by_name
def tensor_core(
    name: str, *, cc: tuple[int, int] | None = None, dtype: str | None = None
) -> TensorCore:
    """Judge the kernel of this full name, demangled or not, possibly cut short. Never fails.

    `cc` is the device's CUDA compute capability (None for AMD, and where not known) and `dtype` the
    op's input type; both only settle what the name leaves open.
    """
    types = name_types(name)
    value, rule = _by_name(name, types.dtype or dtype)
    if value != NOT_APPLICABLE and cc is not None and not _AMD.search(name):
        value, rule = _by_device(value, rule, cc, types.dtype or dtype)
    return TensorCore(value, rule, types.dtype, types.accumulate)


def _by_name(name: str, dtype: str | None) -> tuple[str, str]:
    kind = role(name)
    if _INDUCTOR_LOOPS.match(name):
        return NOT_APPLICABLE, "inductor-loop: Triton without tl.dot"
    if kind not in MATRIX_ROLES:
        # a fused kernel may be called a norm and still name its matrix instruction
        path = "" if kind in HELPERS else split(name).path
        matched_rule = next((rule for rule, pattern in _YES if pattern.search(path)), None)
        return (
            _verdict(matched_rule, dtype)
            if matched_rule
            else (NOT_APPLICABLE, f"{kind.value}: by its name")
        )
    matched_rule = next((rule for rule, pattern in _RULES if pattern.search(name)), None)
    if matched_rule is not None:
        return _verdict(matched_rule, dtype)
    if split(name).path.startswith("at::native::"):
        return NOT_APPLICABLE, "torch: PyTorch's own kernel without a matrix product"
    return UNKNOWN, "no-rule: no rule knows this name"


def _verdict(rule: Rule, dtype: str | None) -> tuple[str, str]:
    text = f"{rule.name}: {rule.because}"
    if rule.name == "nvjet" and dtype == "float32":
        return UNKNOWN, f"{text}; float32 input, the name does not show TF32"
    if rule.verdict is not Verdict.IF_NARROW:
        return rule.verdict.value, text
    if dtype in HALF or dtype in NARROW or dtype == "tf32":
        return USED, f"{text}; likely, for {dtype} input"
    return UNKNOWN, f"{text}; input type {dtype or 'unknown'}"


def _by_device(value: str, rule: str, cc: tuple[int, int], dtype: str | None) -> tuple[str, str]:
    """Settle by what the device has: nothing before Volta, no TF32 before Ampere, ..."""
    if cc < FIRST_TENSOR_CORES:
        return NOT_USED, f"device: compute capability {cc[0]}.{cc[1]} has no Tensor Cores"
    if value != UNKNOWN or dtype is None:
        return value, rule
    usable = "tf32" if dtype == "float32" else dtype
    if tensor_core_takes(cc, usable):
        return value, rule
    return NOT_USED, f"device: no Tensor Cores for {dtype} on {cc[0]}.{cc[1]}"
