"""The CSV of Nsight Compute in the form of each version, from kernels with counters."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True)
class Profiled:
    """A kernel that ncu profiled; its metrics by their raw names, in units without a prefix."""

    name: str = "gemm"
    grid: tuple[int, int, int] = (4, 2, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    regs: int = 32
    smem: tuple[int, int] = (0, 1024)
    """Static and dynamic, bytes."""
    metrics: Mapping[str, float | str] = field(default_factory=dict)
    device: int = 0
    pid: int = 43201


METRICS: Mapping[str, float] = MappingProxyType(
    {
        "gpu__time_duration.sum": 12.34567e-6,
        "dram__bytes_read.sum": 1_234_567.0,
        "dram__bytes_write.sum": 2_000.0,
        "sm__inst_executed_pipe_tensor.sum": 6_144.0,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 41.25,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 24.5,
        "sm__cycles_elapsed.avg.per_second": 1_098_765_432.1,
        "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": 1_000.0,
        "sm__sass_thread_inst_executed_op_fmul_pred_on.sum": 20.0,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 300_000.0,
        "lts__t_sector_hit_rate.pct": 55.5,
        "l1tex__t_sector_hit_rate.pct": 7.25,
    }
)
"""Something of everything."""

TITLES = {
    "gpu__time_duration.sum": ("GPU Speed Of Light Throughput", "Duration"),
    "sm__cycles_elapsed.avg.per_second": ("GPU Speed Of Light Throughput", "SM Frequency"),
    "lts__t_sector_hit_rate.pct": ("Memory Workload Analysis", "L2 Hit Rate"),
    "l1tex__t_sector_hit_rate.pct": ("Memory Workload Analysis", "L1/TEX Hit Rate"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("Occupancy", "Achieved Occupancy"),
}
_COMMAND_LINE = "Command line profiler metrics"
_UNITS = (
    # ends of names: (unit of 2021 and its size, unit of today and its size)
    ("time_duration.sum", ("usecond", 1e-6), ("us", 1e-6)),
    ("dram__bytes_read.sum", ("Mbyte", 1e6), ("Mbyte", 1e6)),
    ("dram__bytes_write.sum", ("Kbyte", 1e3), ("Kbyte", 1e3)),
    ("per_second", ("cycle/nsecond", 1e9), ("Ghz", 1e9)),
    ("pct_of_peak_sustained_active", ("%", 1.0), ("%", 1.0)),
    (".pct", ("%", 1.0), ("%", 1.0)),
)
Number = Callable[[float], str]


def english(value: float) -> str:
    """1,234.56."""
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def german(value: float) -> str:
    """1.234,56."""
    return english(value).translate(str.maketrans(",.", ".,"))


def french(value: float) -> str:
    """1 234,56, with a narrow blank that does not break."""
    return english(value).translate(str.maketrans(",.", "\u202f,"))


def plain(value: float) -> str:
    """1234.56."""
    return english(value).replace(",", "")


PREAMBLE = (
    "==PROF== Connected to process 43201 (/usr/bin/python3.10)\n"
    'step 1: loss 0,5 "ID","x"\n'
    '==PROF== Profiling "gemm" - 0: 0%....50%....100% - 12 passes\n'
)
_END = "==PROF== Disconnected from process 43201\n"


def details(
    kernels: Sequence[Profiled], *, year: int = 2024, number: Number = english, cc: str = "8.0"
) -> str:
    """Write a row per metric: of 2021 without grid and block, with a kernel's time."""
    old = year <= 2021
    head = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name"]
    head += ["Kernel Time", "Context", "Stream"] if old else ["Context", "Stream"]
    head += [] if old else ["Block Size", "Grid Size", "Device", "CC"]
    head += ["Section Name", "Metric Name", "Metric Unit", "Metric Value"]
    head += ["Rule Name", "Rule Type", "Rule Description"]
    rows = []
    for place, kernel in enumerate(kernels):
        start = [str(place), str(kernel.pid), "python3.10", "127.0.0.1", kernel.name]
        start += ["2023-May-09 15:22:21", "1", "7"] if old else ["1", "7"]
        start += [] if old else [str(kernel.block), str(kernel.grid), str(kernel.device), cc]
        rows += [[*start, *metric] for metric in _long(kernel, old=old, number=number)]
        rows.append([*start, "Occupancy", "", "", "", "Occupancy", "WRN", 'Est. 10%, "or"\nmore'])
    return PREAMBLE + _spelt([head, *rows]) + _END


def _long(kernel: Profiled, *, old: bool, number: Number) -> list[list[str]]:
    rows = []
    for name, value in kernel.metrics.items():
        section, title = (_COMMAND_LINE, name) if old else TITLES.get(name, (_COMMAND_LINE, name))
        unit, size = _unit(name, old=old)
        rows.append([section, title, unit, _value(value, size, number)])
    x, y, z = kernel.grid
    launch = {
        ("Grid Size", ""): x * y * z,
        ("Block Size", ""): kernel.block[0] * kernel.block[1] * kernel.block[2],
        ("Registers Per Thread", "register/thread"): kernel.regs,
        ("Static Shared Memory Per Block", "byte/block"): kernel.smem[0],
    }
    rows += [["Launch Statistics", *key, number(value)] for key, value in launch.items()]
    dynamic = number(kernel.smem[1] / 1000)
    rows.append(["Launch Statistics", "Dynamic Shared Memory Per Block", "Kbyte/block", dynamic])
    throughput = ["GPU Speed Of Light Throughput", "Memory Throughput", "%", number(12.5)]
    return [*rows, throughput]


def raw(kernels: Sequence[Profiled], *, number: Number = english, cc: str = "8.0") -> str:
    """Write a column per metric, with a row of units."""
    names = [*dict.fromkeys(name for kernel in kernels for name in kernel.metrics)]
    launch = ["launch__registers_per_thread", "launch__shared_mem_per_block_static",
              "launch__shared_mem_per_block_dynamic", "smsp__unknown.sum"]  # fmt: skip
    head = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
            "Block Size", "Grid Size", "Device", "CC", *names, *launch]  # fmt: skip
    units = [""] * (len(head) - len(names) - len(launch))
    units += [_unit(name, old=False)[0] for name in names]
    units += ["register/thread", "byte/block", "byte/block", "inst"]
    rows = []
    for place, kernel in enumerate(kernels):
        row = [str(place), str(kernel.pid), "python3.10", "127.0.0.1", kernel.name, "1", "7"]
        row += [str(kernel.block), str(kernel.grid), str(kernel.device), cc]
        for name in names:
            size = _unit(name, old=False)[1]
            row.append(_value(kernel.metrics.get(name, "n/a"), size, number))
        row += [number(kernel.regs), number(kernel.smem[0]), number(kernel.smem[1]), "(!) n/a"]
        rows.append(row)
    return PREAMBLE + _spelt([head, units, *rows]) + _END


def _unit(name: str, *, old: bool) -> tuple[str, float]:
    units = next((units for end, *units in _UNITS if name.endswith(end)), None)
    return units[not old] if units else ("", 1.0)


def _value(value: float | str, size: float, number: Number) -> str:
    return value if isinstance(value, str) else number(value / size)


def _spelt(rows: Sequence[Sequence[str]]) -> str:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return file.getvalue()


def summary(kernel: Profiled, calls: int) -> str:
    """Write `--print-summary per-kernel`: each metric's minimum, maximum and mean over calls."""
    head = ["Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size", "Grid Size",
            "Device", "CC", "Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum",
            "Maximum", "Average"]  # fmt: skip
    start = [str(kernel.pid), "python3.10", "127.0.0.1", kernel.name, str(kernel.block),
             str(kernel.grid), str(kernel.device), "8.0", str(calls)]  # fmt: skip
    rows = []
    for name, value in kernel.metrics.items():
        unit, size = _unit(name, old=False)
        spelt = [_value(value, size * factor, english) for factor in (2, 0.5, 1)]
        rows.append([*start, _COMMAND_LINE, name, unit, *spelt])
    return PREAMBLE + _spelt([head, *rows]) + _END


def _with_semicolons(text: str) -> str:
    """Write the table as a German spreadsheet does: no needless quotes, no lines before it."""
    rows = csv.reader(line for line in text.splitlines() if line.startswith('"'))
    file = io.StringIO()
    csv.writer(file, delimiter=";", lineterminator="\r\n").writerows(rows)
    return file.getvalue()


FORMS: Mapping[str, Callable[[Sequence[Profiled]], str]] = {
    "details of 2021": lambda kernels: details(kernels, year=2021),
    "details": details,
    "details, in German": lambda kernels: details(kernels, number=german),
    "raw": raw,
    "raw, in French": lambda kernels: raw(kernels, number=french),
    "raw, saved by a spreadsheet": lambda kernels: _with_semicolons(raw(kernels, number=german)),
    "raw, without groups": lambda kernels: raw(kernels, number=plain),
}


def ncu_csv(path: Path, kernels: Sequence[Profiled], form: str = "raw") -> Path:
    path.write_text(FORMS[form](kernels), encoding="utf-8")
    return path
