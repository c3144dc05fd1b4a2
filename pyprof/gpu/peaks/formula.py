"""Peak rates from the hardware itself: SMs x clock x operations a clock, by compute capability.

For cards that the table does not list, slices (MIG) and laptop parts. An FMA counts two. Source:
CUDA C++ Programming Guide, arithmetic throughput by compute capability, and NVIDIA's architecture
whitepapers; checked against the datasheets of `card_table` (rows marked F agree within 2 %).

float16 on CUDA cores, as half2: 4 times the float32 rate in 8.0, twice in 6.0, 7.x and 9.0, the
same from 8.6 on in the others, a 64th in 6.1; not known of 10.x.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Generation(NamedTuple):
    """FLOP per clock and SM, dense, with the keys of `card_table`."""

    rates: Mapping[str, float]
    doubts: tuple[str, ...] = ()


def _turing(half: int) -> dict[str, float]:
    doubled = {"float16 tensor, float16 sum": 1024.0} if half < 1024 else {}  # noqa: PLR2004
    return {
        "float64": 4, "float32": 128, "float16": 256,
        "float16 tensor": half, "int8 tensor": 2048, **doubled,
    }  # fmt: skip


def _ampere(tf32: int, half: int, fp8: int | None = None) -> dict[str, float]:
    """Rates from GA10x on: a part with half the tensor rate has the full one for float16 sums."""
    rates: dict[str, float] = {
        "float64": 4, "float32": 256, "float16": 256,
        "tf32 tensor": tf32, "half tensor": half, "int8 tensor": 2048,
    }  # fmt: skip
    if half < 1024:  # noqa: PLR2004 - the full rate
        rates["half tensor, float16 sum"] = 2 * half
    if fp8 is not None:
        rates["float8 tensor"] = fp8
        if half < 1024:  # noqa: PLR2004
            rates["float8 tensor, float16 sum"] = 2 * fp8
    return rates


FULL: Mapping[tuple[int, int], Generation] = {
    (6, 0): Generation({"float64": 64, "float32": 128, "float16": 256}),
    (6, 1): Generation({"float64": 8, "float32": 256, "float16": 4}),
    (7, 0): Generation({"float64": 64, "float32": 128, "float16": 256,
                        "float16 tensor": 1024, "int8": 512}),
    (7, 5): Generation(_turing(1024)),
    (8, 0): Generation({"float64": 64, "float64 tensor": 128, "float32": 128,
                        "float16": 512, "tf32 tensor": 1024, "half tensor": 2048,
                        "int8 tensor": 4096}),
    (8, 6): Generation(_ampere(512, 1024)),
    (8, 9): Generation(_ampere(512, 1024, 2048)),
    (9, 0): Generation({"float64": 128, "float64 tensor": 256, "float32": 256,
                        "float16": 512, "tf32 tensor": 2048, "half tensor": 4096,
                        "float8 tensor": 8192, "int8 tensor": 8192}),
    (10, 0): Generation({"float64": 128, "float64 tensor": 128, "float32": 256,
                         "tf32 tensor": 4096, "half tensor": 8192, "float8 tensor": 16384,
                         "int8 tensor": 16384, "float4 tensor": 32768}, ("U8",)),
    (10, 3): Generation({"float64": 4, "float32": 256, "tf32 tensor": 4096,
                         "half tensor": 8192, "float8 tensor": 16384,
                         "float4 tensor": 49152}, ("U9",)),
    (12, 0): Generation({**_ampere(512, 1024, 2048), "float4 tensor": 4096}, ("U6",)),
}  # fmt: skip
"""Data-centre and workstation parts."""

GEFORCE: Mapping[tuple[int, int], Generation] = {
    (7, 5): Generation(_turing(512), ("U5",)),
    (8, 6): Generation(_ampere(256, 512), ("U5",)),
    (8, 9): Generation(_ampere(256, 512, 1024), ("U5",)),
    (12, 0): Generation({**_ampere(256, 512, 1024), "float4 tensor": 4096}, ("U5", "U6")),
}
"""GeForce parts of generations that halve the rate for float32 sums."""


_AMD = re.compile(r"\b(?:amd|radeon|instinct|mi\d\w*)\b", re.IGNORECASE)
_OTHERS = re.compile(
    r"\b(?:(?P<hpu>gaudi ?\d?|hl|hpu)|(?P<npu>ascend\w*|npu)|(?P<mtia>mtia)"
    r"|(?P<xpu>intel(?!.*gaudi)|xpu)|(?P<mlu>mlu\d*)|(?P<gcu>gcu)|(?P<ipu>ipu)|(?P<xla>tpu)"
    r"|(?P<privateuseone>privateuse1))\b",
    re.IGNORECASE,
)
"""Devices that torch does not call `cuda`, by what it calls them."""
_NO_TENSOR_CORES = re.compile(r"\bgtx\b", re.IGNORECASE)
"""GeForce GTX 16: Turing, but without Tensor Cores."""


_LIMITED = re.compile(r"\b(?:h20|h20z|h800|l20|l2|5090 d)\b", re.IGNORECASE)
"""Parts for export, held below what their SMs and clock could do."""


def is_cuda(name: str | None) -> bool:
    """Whether a device's compute capability is CUDA's: ROCm reports its own in the same field."""
    return torch_device(name) == "cuda" and not (name and _AMD.search(name))


def torch_device(name: str | None) -> str:
    """Return what torch calls a device of this name: `cuda`, also for AMD's; `xpu`, `npu`, ..."""
    match = _OTHERS.search(name or "")
    return str(match.lastgroup) if match else "cuda"


def generation(cc: tuple[int, int], name: str | None) -> Generation | None:
    """Choose the rates per clock and SM.

    None for a compute capability not listed, for AMD, and for parts limited below their hardware.

    Without a name, only the rates that GeForce and the other parts share are returned.
    """
    full = FULL.get(cc)
    geforce = GEFORCE.get(cc)
    if full is None or not is_cuda(name) or (name and _LIMITED.search(name)):
        return None
    if geforce is None:
        return full
    if name is None:
        shared = {key: rate for key, rate in full.rates.items() if geforce.rates.get(key) == rate}
        return Generation(shared, full.doubts)
    if _NO_TENSOR_CORES.search(name):
        return Generation({key: rate for key, rate in full.rates.items() if "tensor" not in key})
    return geforce if "geforce" in name.lower() else full


def quoted_at_tensor_clock(key: str) -> bool:
    """Whether NVIDIA quotes this rate at the lower clock of a card that has two.

    H100: 989 TFLOP/s at 1830 MHz, but 66.9 of float64, on CUDA and Tensor Cores, at 1980.
    """
    return "tensor" in key and key != "float64 tensor"
