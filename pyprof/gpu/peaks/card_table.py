"""Peak rates of GPUs, dense, one row a card, with sources. Data only; `peaks` gives it meaning.

Rates in TFLOP/s (TOP/s for integers), bandwidth in GB/s, per device as CUDA sees it. Tensor Core
rates count no sparsity and, unless the key says otherwise, accumulate in float32 (int32). Tables
on the web often print the sparse figure (twice) or, for GeForce, the float16-accumulate one
(twice as well): a value that is twice the formula's is one of those.

Keys of `rates_tflops`: `float64`, `float32`, `float16` on CUDA cores (float16: two numbers packed
in one register, summed in float16); `<dtype> tensor` on Tensor Cores; `<dtype> tensor, float16
sum`. `half` stands for float16 and bfloat16, `float8` for both its forms, `float4` for e2m1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCES: Mapping[str, str] = {
    "S1": "NVIDIA datasheets as collected in gmasse/gpu-specs (its RTX 4090 column is wrong)",
    "S2": "hmc-tech.com, T4 against V100",
    "S3": "glennklockwood.com/garden/processors A100, H100, citing NVIDIA's PDFs",
    "S4": "Thunder Compute's A100 guide (80 GB: PCIe 1935, SXM 2039 GB/s)",
    "S5": "hmc-tech.com, A40, L40, RTX 4090",
    "S6": "NVIDIA's L40 and L40S tables as copied by mullet.se",
    "S7": "NVIDIA GA102 whitepaper, from memory; the formula agrees",
    "S8": "spheron.network RTX 5090 (sparse, halved; halved again for float32 sums)",
    "S9": "NVIDIA H100 datasheet as archived by hpctech.co.jp (sparse figures halved)",
    "S10": "stas00/ml-engineering, compute/accelerator (all dense)",
    "S11": "torchtitan's 835e12 for the H100 NVL, with NVIDIA's URL",
    "S12": "feifeibear/LLMRoofline: GH200 4.0 and 4.9 TB/s",
    "S13": "glennklockwood.com/garden/processors/B200 and a copy of the datasheet; they differ",
    "S14": "arXiv 2606.06510 for float64 of the B300; the rest by ratio to the B200",
    "S15": "AMD datasheets as in torch's _inductor/analysis/device_info.py; GPUOpen's blog",
    "S16": "vendors' pages: 6 TB/s for the MI325X",
    "S18": "NVIDIA on H20, H800, A800, L20 as quoted by zangshuxian.com, aiwiki.ai, topcpu.net",
    "S19": "NVIDIA A30 datasheet; sysrqmts.com: 56 SMs, 1440 MHz, 933 GB/s; the formula agrees",
    "S20": "NVIDIA RTX A6000 and RTX 6000 Ada datasheets, from memory; the formula agrees",
    "S21": "NVIDIA Turing whitepaper, from memory; the formula agrees; nvidia-smi: 1770 MHz",
    "S22": "NVIDIA RTX PRO Blackwell as on hmc-tech.com and by its FP4 TOPS (sparse,"
    " halved); the Server Edition's rates by ratio to its 120 TFLOP/s of float32",
    "S23": "NVIDIA RTX Blackwell whitepaper; FP4 TOPS 1801 and 1406 (sparse, halved)",
    "S24": "NVIDIA Tesla P100 whitepaper; the formula agrees",
    "S25": "AMD CDNA 4 whitepaper; svethardware.cz; 256 CUs at 2400 or 2200 MHz give the same",
    "S26": "glennklockwood.com/garden/processors/B300, of the HGX board",
    "S27": "NVIDIA's driver README: PG509-210 has the PCI id of the A100-SXM4-80GB",
    "S28": "AMD's figures for the MI210 and MI250 as in anandtech.com/show/17326",
    "S29": "Intel's technical overview of the Data Center GPU Max Series (ID 766085): 64 Xe"
    " cores a stack at 1600 MHz; glennklockwood.com/garden/processors/pvc: 3276.8 GB/s",
    "S30": "Intel on Gaudi 2 and 3 at Vision 2024, as in pcguia.pt: 432 and 1835 TFLOP/s",
    "S31": "NVIDIA's comparison of laptop GPUs (SMs, highest boost clock, AI TOPS, memory), as"
    " hmc-tech.com has the 4090 and 5090, neowin.net the AI TOPS of the 50s; else from memory",
    "S32": "aiwiki.ai/wiki/nvidia_h200: 4.8 TB/s on the NVL board, too; rates of the H100 NVL",
    "S33": "verda.com/blog/gb300-nvl72-architecture, without sparsity; NVIDIA's 360 PFLOP/s of"
    " float8, 1.1 EFLOP/s of float4 and 576 TB/s of the rack of 72 agree; 152 SMs: FlashInfer",
    "S34": "NVIDIA at Hot Chips 2025, as in afnnews.qaasid.com/145463: 31 TFLOP/s of float32,"
    " 1 PFLOP/s of float4 (sparse, halved); 6144 CUDA cores; the DGX Spark's 273 GB/s",
    "S17": "NVIDIA DGX Station datasheet: 500 TFLOP/s for its four; nvidia-smi: 1530, 877 MHz",
}

DOUBTS: Mapping[str, str] = {
    "U1": "T4: some pages say 300 GB/s, the driver reports 320",
    "U2": "A10G: 70 and 125 TFLOP/s are both quoted; the lower one, by the GeForce half rate",
    "U3": "L4: torch's own table has 3350 GB/s and 15 TFLOP/s float64, both wrong",
    "U4": "L40: aggregators give it the L40S's 362; NVIDIA's table says 181",
    "U5": "GeForce: half rate with float32 sums; many tables print the float16-sum figure",
    "U6": "Blackwell GeForce and RTX PRO: quoted and measured rates disagree, float8 above all",
    "U7": "H100 NVL: early briefs list the pair of cards, twice this",
    "U8": "B200, GB200: NVIDIA revised its figures between 2024 and the later datasheet",
    "U9": "B300: float64 and int8 cut by more than ten; 13 to 15 PFLOP/s of float4 are quoted,"
    " the other rates are by ratio",
    "U11": "laptop GPUs: at the highest clock that a maker may allow; with a smaller power"
    " limit down to a third less. AI TOPS imply a higher clock than the one listed",
    "U12": "Max 1550: with ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE a device is both stacks, so twice"
    " this",
    "U13": "GB10: the DGX Spark's bandwidth; 301 GB/s are quoted for the chip",
    "U10": "H20: 44 TFLOP/s of float32 are quoted, more than 78 SMs give at 1980 MHz",
}


@dataclass(frozen=True, slots=True)
class Card:
    """Published figures of one card."""

    name: str
    cc: tuple[int, int] | None
    """Compute capability; None for AMD."""
    sm_count: int
    """SMs (AMD: compute units) of the full card: fewer mean a slice of it."""
    clock_mhz: int | None
    """Boost clock that the CUDA-core rates are quoted at; None if they are not by formula."""
    tensor_clock_mhz: int | None
    """The clock behind the Tensor Core rates where NVIDIA quotes them at another one."""
    rates_tflops: Mapping[str, float]
    """TFLOP/s, for integers TOP/s."""
    bandwidth_gb_s: float
    sources: str
    """Keys of SOURCES; F if the formula gives the same within 2 %; C if captures agree."""
    spellings: tuple[str, ...]
    """Device names as drivers report them, without vendor words; order and case do not matter."""
    doubts: tuple[str, ...] = ()


def _rates(
    fp64: float | None, fp64_tc: float | None, fp32: float, tf32: float | None,
    half: float | None, fp8: float | None, int8: float | None, fp16: float | None = None,
    fp4: float | None = None,
) -> dict[str, float]:  # fmt: skip
    named = {
        "float64": fp64, "float64 tensor": fp64_tc, "float32": fp32, "float16": fp16,
        "tf32 tensor": tf32, "half tensor": half, "float8 tensor": fp8, "int8 tensor": int8,
        "float4 tensor": fp4,
    }  # fmt: skip
    return {key: value for key, value in named.items() if value is not None}


def _volta(fp64: float, fp32: float, half: float) -> dict[str, float]:
    """Rates of GPUs whose Tensor Cores take only float16, and whose CUDA cores take it in pairs."""
    return {"float64": fp64, "float32": fp32, "float16": 2 * fp32, "float16 tensor": half}


def _geforce(half: float, fp8: float | None) -> dict[str, float]:
    """Return the rates with float16 sums: twice the given ones."""
    doubled = {"half tensor, float16 sum": 2 * half}
    return doubled if fp8 is None else {**doubled, "float8 tensor, float16 sum": 2 * fp8}


_A100 = _rates(9.7, 19.5, 19.5, 156, 312, None, 624, 78)
_H800 = _rates(1, 1, 66.9, 494.7, 989.4, 1979, 1979, 133.8)
_H100 = _rates(33.5, 66.9, 66.9, 494.7, 989.4, 1979, 1979, 133.8)
_MI300 = {**_rates(81.7, 163.4, 163.4, 653.7, 1307.4, 2614.9, 2614.9), "float32 tensor": 163.4}

_MI350 = {
    **_rates(72.1, 72.1, 144.2, None, 2306.9, 4613.7, 4613.7, None, 9227.5),
    "float32 tensor": 144.2,
}
_MI355 = {
    **_rates(78.6, 78.6, 157.3, None, 2516.6, 5033.2, 5033.2, None, 10066.3),
    "float32 tensor": 157.3,
}


def _laptop(name: str, sms: int, clock_mhz: int, ai_tops: float, bandwidth_gb_s: float) -> Card:
    """Return a GeForce for laptops, whose datasheet states SMs, clock and AI TOPS.

    AI TOPS are sparse, of int8 (RTX 40) or float4 (RTX 50), and with float16 sums.
    """
    ada, tera = name.startswith("RTX 40"), sms * clock_mhz / 1e6
    half = ai_tops / (8 if ada else 16)
    rates = _rates(4 * tera, None, 256 * tera, half / 2, half, 2 * half, 4 * half, 256 * tera,
                   None if ada else 8 * half)  # fmt: skip
    tensor_mhz = round(half * 1e6 / (512 * sms))  # implied by AI TOPS
    return Card(f"{name} Laptop", (8, 9) if ada else (12, 0), sms, clock_mhz, tensor_mhz,
                {**rates, **_geforce(half, 2 * half)}, bandwidth_gb_s, "S31",
                (f"{name} Laptop GPU",), ("U5", "U11") if ada else ("U5", "U6", "U11"))  # fmt: skip


CARDS: tuple[Card, ...] = (
    Card("P100 SXM2", (6, 0), 56, 1480, None, {"float64": 5.3, "float32": 10.6, "float16": 21.2},
         732, "S24 F", ("P100 SXM2 16GB", "P100 SXM2")),
    Card("P100 PCIe", (6, 0), 56, 1303, None, {"float64": 4.7, "float32": 9.3, "float16": 18.7},
         732, "S24 F", ("P100 PCIE 16GB",)),
    Card("P100 PCIe 12GB", (6, 0), 56, 1303, None,
         {"float64": 4.7, "float32": 9.3, "float16": 18.7}, 549, "S24 F", ("P100 PCIE 12GB",)),
    Card("V100 SXM2", (7, 0), 80, 1530, None,
         {**_volta(7.8, 15.7, 125), "int8": 62.7}, 900, "S1 S2 F",
         ("V100 SXM2 16GB", "V100 SXM2 32GB", "V100 SXM2")),
    Card("V100 DGXS", (7, 0), 80, 1530, None, _volta(7.8, 15.7, 125), 900, "S17 F",
         ("V100 DGXS 16GB", "V100 DGXS 32GB")),
    Card("V100 PCIe", (7, 0), 80, 1380, None, _volta(7.0, 14.1, 112), 900, "S1 F",
         ("V100 PCIE 16GB", "V100 PCIE 32GB", "V100 PCIE")),
    Card("V100S PCIe", (7, 0), 80, 1601, None, _volta(8.2, 16.4, 130), 1134, "S1",
         ("V100S PCIE 32GB", "V100S")),
    Card("T4", (7, 5), 40, 1590, None,
         {**_volta(0.25, 8.1, 65), "int8 tensor": 130}, 320, "S1 S2 F C", ("T4",), ("U1",)),
    Card("A100 40GB", (8, 0), 108, 1410, None, _A100, 1555, "S1 S3 F C",
         ("A100 SXM4 40GB", "A100 PCIE 40GB", "A100 40GB")),
    Card("A100 PCIe 80GB", (8, 0), 108, 1410, None, _A100, 1935, "S1 S4",
         ("A100 80GB PCIe", "A100 PCIE 80GB")),
    Card("A100 SXM 80GB", (8, 0), 108, 1410, None, _A100, 2039, "S1 S3 S27 C",
         ("A100 SXM4 80GB", "A100 80GB", "PG509 210")),
    Card("A800 40GB", (8, 0), 108, 1410, None, _A100, 1555, "S18 F",
         ("A800 SXM4 40GB", "A800 PCIE 40GB", "A800 40GB Active")),
    Card("A800 PCIe 80GB", (8, 0), 108, 1410, None, _A100, 1935, "S18 F",
         ("A800 80GB PCIe", "A800 PCIE 80GB")),
    Card("A800 SXM 80GB", (8, 0), 108, 1410, None, _A100, 2039, "S18 F",
         ("A800 SXM4 80GB", "A800 80GB")),
    Card("A30", (8, 0), 56, 1440, None, _rates(5.2, 10.3, 10.3, 82, 165, None, 330, 41.3), 933,
         "S19 F", ("A30",)),
    Card("A10", (8, 6), 72, 1695, None, _rates(0.49, None, 31.2, 62.5, 125, None, 250, 31.2), 600,
         "S1 F", ("A10",)),
    Card("A10G", (8, 6), 80, 1710, None, _rates(0.5, None, 35, 35, 70, None, None, 35), 600,
         "S1", ("A10G",), ("U2",)),
    Card("A40", (8, 6), 84, 1740, None, _rates(0.58, None, 37.4, 74.8, 149.7, None, 299, 37.4), 696,
         "S5 F C", ("A40",)),
    Card("Quadro RTX 6000", (7, 5), 72, 1770, None,
         {**_volta(0.51, 16.3, 130.5), "int8 tensor": 261}, 672, "S21 F C", ("Quadro RTX 6000",)),
    Card("RTX A6000", (8, 6), 84, 1800, None,
         _rates(0.605, None, 38.7, 77.4, 154.8, None, 309.7, 38.7), 768, "S20 F", ("RTX A6000",)),
    Card("RTX 6000 Ada", (8, 9), 142, 2505, None,
         _rates(1.42, None, 91.1, 182.1, 364.2, 728.5, 728.5, 91.1), 960, "S20 F",
         ("RTX 6000 Ada Generation",)),
    Card("L20", (8, 9), 92, 2520, None,
         _rates(0.93, None, 59.4, 59.8, 119.5, 239, 239, 59.4), 864, "S18", ("L20",)),
    Card("L4", (8, 9), 58, 2040, None, _rates(0.49, None, 30.3, 60, 121, 242, 242, 30.3), 300,
         "S1 F", ("L4",), ("U3",)),
    Card("L40S", (8, 9), 142, 2520, None, _rates(1.4, None, 91.6, 183, 362, 733, 733, 91.6), 864,
         "S1 S6 F", ("L40S",)),
    Card("L40", (8, 9), 142, 2490, None, _rates(1.4, None, 90.5, 90.5, 181, 362, 362, 90.5), 864,
         "S6", ("L40",), ("U4",)),
    Card("RTX 3090", (8, 6), 82, 1695, None,
         {**_rates(0.56, None, 35.6, 35.6, 71.2, None, 285, 35.6), **_geforce(71.2, None)}, 936,
         "S7 F C", ("RTX 3090",), ("U5",)),
    Card("RTX 4090", (8, 9), 128, 2520, None,
         {**_rates(1.29, None, 82.6, 82.6, 165.2, 330, 661, 82.6), **_geforce(165.2, 330)}, 1008,
         "S5 F", ("RTX 4090",), ("U5",)),
    Card("RTX 5090", (12, 0), 170, 2407, None,
         {**_rates(1.64, None, 104.8, 104.8, 209.5, 419, 838, 104.8, 1676), **_geforce(209.5, 419)},
         1792, "S8 F", ("RTX 5090",), ("U5", "U6")),
    Card("RTX 5080", (12, 0), 84, 2617, None,
         {**_rates(0.88, None, 56.3, 56.3, 112.6, 225.1, 450.2, 56.3, 900.4),
          **_geforce(112.6, 225.1)}, 960, "S23 F", ("RTX 5080",), ("U5", "U6")),
    Card("RTX 5070 Ti", (12, 0), 70, 2452, None,
         {**_rates(0.69, None, 43.9, 43.9, 87.9, 175.8, 351.5, 43.9, 703),
          **_geforce(87.9, 175.8)}, 896, "S23 F", ("RTX 5070 Ti",), ("U5", "U6")),
    _laptop("RTX 4090", 76, 2040, 686, 576),
    _laptop("RTX 4080", 58, 2280, 542, 432),
    _laptop("RTX 4070", 36, 2175, 321, 256),
    _laptop("RTX 4060", 24, 2370, 233, 256),
    _laptop("RTX 4050", 20, 2370, 194, 192),
    _laptop("RTX 5090", 82, 2160, 1824, 896),
    _laptop("RTX 5080", 60, 2287, 1334, 896),
    _laptop("RTX 5070 Ti", 46, 2220, 992, 672),
    _laptop("RTX 5070", 36, 2347, 798, 384),
    Card("RTX PRO 6000 Blackwell", (12, 0), 188, 2617, None,
         _rates(1.97, None, 126, 251.9, 503.8, 1007.6, 1007.6, 126, 2015), 1792, "S22 F",
         ("RTX PRO 6000 Blackwell Workstation Edition",), ("U6",)),
    Card("RTX PRO 6000 Blackwell Max-Q", (12, 0), 188, 2280, None,
         _rates(1.71, None, 110, 219.5, 438.9, 877.9, 877.9, 110, 1755.5), 1792, "S22 F",
         ("RTX PRO 6000 Blackwell Max-Q Workstation Edition",), ("U6",)),
    Card("RTX PRO 6000 Blackwell Server", (12, 0), 188, 2493, None,
         _rates(1.88, None, 120, 240, 480, 960, 960, 120, 1920), 1597, "S22 F",
         ("RTX PRO 6000 Blackwell Server Edition",), ("U6",)),
    Card("H100 SXM", (9, 0), 132, 1980, 1830, _H100, 3350, "S3 S9 F C",
         ("H100 80GB HBM3", "H100 SXM5 80GB", "H100 SXM5", "H100 SXM", "H100")),
    Card("H100 PCIe", (9, 0), 114, 1755, 1620,
         _rates(25.6, 51.2, 51.2, 378, 756, 1513, 1513, 102.4), 2000, "S9 S10 F", ("H100 PCIe",)),
    Card("H100 NVL", (9, 0), 132, 1785, 1545, _rates(30, 60, 60, 418, 835, 1671, 1671, 120), 3900,
         "S11 F", ("H100 NVL",), ("U7",)),
    # no formula applies: limited below what its SMs could do
    Card("H20", (9, 0), 78, None, None, _rates(1, 1, 44, 74, 148, 296, 296), 4000, "S18",
         ("H20", "H20 96GB HBM3"), ("U10",)),
    Card("H800 SXM", (9, 0), 132, 1980, 1830, _H800, 3350, "S18",
         ("H800", "H800 SXM5", "H800 80GB HBM3")),
    Card("H800 PCIe", (9, 0), 114, 1755, 1620,
         _rates(0.8, 0.8, 51.2, 378, 756, 1513, 1513, 102.4), 2000, "S18", ("H800 PCIe",)),
    Card("H200 SXM", (9, 0), 132, 1980, 1830, _H100, 4800, "S3 S10 F C",
         ("H200", "H200 SXM", "H200 141GB HBM3e")),
    Card("H200 NVL", (9, 0), 132, 1785, 1545, _rates(30, 60, 60, 418, 835, 1671, 1671, 120), 4800,
         "S11 S32 F", ("H200 NVL",)),
    Card("GH200 96GB", (9, 0), 132, 1980, 1830, _H100, 4000, "S12",
         ("GH200 480GB", "GH200 96GB HBM3", "GH200")),
    Card("GH200 144GB", (9, 0), 132, 1980, 1830, _H100, 4900, "S12",
         ("GH200 144G HBM3e", "GH200 144GB")),
    Card("B200", (10, 0), 148, 1965, 1850,
         _rates(37, 37, 75, 1100, 2250, 4500, 4500, None, 9000), 7700, "S10 S13 F",
         ("B200",), ("U8",)),
    Card("GB200", (10, 0), 152, None, None,
         _rates(40, 40, 80, 1250, 2500, 5000, 5000, None, 10000), 8000, "S10 S13",
         ("GB200",), ("U8",)),
    Card("B300", (10, 3), 148, None, None,
         _rates(1.3, None, 75, 1100, 2250, 4500, None, None, 13125), 8000, "S14 S26",
         ("B300", "B300 SXM6 AC"), ("U9",)),
    Card("GB300", (10, 3), 152, None, None,
         _rates(None, None, 80, 1250, 2500, 5000, None, None, 15000), 8000, "S33", ("GB300",)),
    Card("GB10", (12, 1), 48, None, None, {"float32": 31, "float4 tensor": 500}, 273, "S34",
         ("GB10",), ("U13",)),
    # half of the board: torch and the driver show each of its two dies as a device
    Card("MI250X (one die)", None, 110, None, None,
         {**_rates(23.95, 47.85, 23.95, None, 191.5, None, 191.5), "float32 tensor": 47.85}, 1638.5,
         "S10 S15", ("MI250X", "MI250X MI250", "MI250X OAM")),
    Card("MI210", None, 104, None, None,
         {**_rates(22.6, 45.3, 22.6, None, 181, None, 181), "float32 tensor": 45.3}, 1638.4,
         "S28", ("MI210",)),
    Card("MI250 (one die)", None, 104, None, None,
         {**_rates(22.6, 45.3, 22.6, None, 181, None, 181), "float32 tensor": 45.3}, 1638.4,
         "S28", ("MI250", "MI250 OAM")),
    Card("MI300X", None, 304, None, None, _MI300, 5300, "S10 S15",
         ("MI300X", "MI300X OAM", "MI300X VF")),
    Card("MI325X", None, 304, None, None, _MI300, 6000, "S15 S16", ("MI325X", "MI325X OAM")),
    Card("MI350X", None, 256, None, None, _MI350, 8000, "S25", ("MI350X", "MI350X OAM")),
    Card("MI355X", None, 256, None, None, _MI355, 8000, "S25", ("MI355X", "MI355X OAM")),
    # half of the card: torch shows each of its two stacks as a device
    Card("Intel Max 1550 (one stack)", None, 64, None, None,
         _rates(26.2, None, 26.2, 209.7, 419.4, None, 838.9, 52.4), 1638.4, "S29",
         ("Intel(R) Data Center GPU Max 1550", "Data Center Max 1550", "Max 1550"), ("U12",)),
    Card("Gaudi 2", None, 24, None, None, {"half tensor": 432, "float8 tensor": 865}, 2450, "S30",
         ("HL 225", "Gaudi2", "Intel Gaudi2", "Intel Gaudi 2")),
    Card("Gaudi 3", None, 64, None, None, {"half tensor": 1835, "float8 tensor": 1835}, 3700,
         "S30", ("HL 325", "Gaudi3", "Intel Gaudi3", "Intel Gaudi 3")),
)  # fmt: skip
