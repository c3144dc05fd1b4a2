"""Each rule applies if there is evidence, with a gain, and not otherwise."""

import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest

from pyprof import schema
from pyprof.analysis.advice import RuleContext, advise
from pyprof.analysis.advice.finding import Advice
from pyprof.analysis.advice.loops import python_loop, tiny_batches
from pyprof.analysis.advice.precision import half_precision
from pyprof.analysis.advice.registry import rules
from pyprof.analysis.back_test import tried
from pyprof.analysis.summary.phases import of_rows
from pyprof.analysis.time.steps import find_steps
from pyprof.analysis.time.timeline import timeline
from pyprof.marker import Call, Tensor, encode_layer, encode_op, encode_seq, encode_trace
from pyprof.parse import parse
from pyprof.prof.table import Override, Table
from tests.analysis.captures import (
    ADD,
    NCCL,
    US,
    Api,
    Range,
    Work,
    capture,
    copy,
    one_step,
    op,
    trace,
)
from tests.analysis.test_attention_calls import attention, told
from tests.known import known

TC_GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
CUDA_CORES = "ampere_sgemm_128x64_tn"
HALF_CUDA_CORES = "ampere_hgemm_128x128_tn"
LAYOUT = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(cudnn::ops::nchw2nhwc_params_t<float>, float const*, float*)"  # fmt: skip # noqa: E501


@dataclass(frozen=True)
class Story:
    """What happened: evidence for a rule, or what only looks like it."""

    work: list[Work]
    ranges: list[Range] = field(default_factory=list)
    api: list[Api] = field(default_factory=list)
    gpu: dict[str, object] = field(default_factory=dict)
    """What differs from an A100."""
    override: Override = field(default_factory=Override)


def _context(story: Story) -> RuleContext:
    net = capture(story.work, story.api, story.ranges)
    devices = net.devices.to_pylist()
    columns = {key: [{**row, **story.gpu}[key] for row in devices] for key in devices[0]}
    net = replace(net, devices=schema.table(schema.DEVICES, columns))
    table = Table(parse(net), story.override)
    table.steps = of_rows(find_steps(table.records, net))
    return RuleContext(table, timeline(table.records, net), net)


def _advice(story: Story) -> dict[str, Advice]:
    return {advice.rule: advice for advice in advise(_context(story))}


def _expected_us(advice: Advice) -> float:
    """The gain in us; for an interval, the expected gain."""
    gain_ns = advice.predicted.expected_ns if advice.predicted else known(advice.gain_ns)
    return gain_ns / US


def _busy(length: int = 100, name: str = TC_GEMM, begin: int = 0, grid: int = 256) -> Work:
    at = begin * US
    return Work((at + 10 * US, at + (10 + length) * US), (at, at + 5 * US), name,
                grid=(grid, 1, 1))  # fmt: skip


def _called(name: str, work: Work, *tensors: Tensor) -> list[Range]:
    begin, end = work.call or (0, 0)
    bounds = (begin - US // 2, end + US // 2)
    return [trace((bounds[0] - 100, bounds[1] + 100), "/src/net.py:5"), op(name, bounds, *tensors)]


def _tensor(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(shape, dtype)


BIG = (_tensor(4096, 4096), _tensor(4096, 4096))
HALF = (_tensor(4096, 4096, dtype="float16"), _tensor(4096, 4096, dtype="float16"))


def _matmul(name: str, tensors: tuple[Tensor, ...], length: int) -> Story:
    work = _busy(length, name, begin=10)
    return Story([work], _called("matmul", work, *tensors))


def _chain(*sizes: int, part: str = "", names: tuple[str, ...] = ("add", "mul")) -> Story:
    """Run element-wise ops by turns, one kernel after the other, launched well before."""
    ranges, work = [], []
    for place, size in enumerate(sizes):
        call = ((10 + 10 * place) * US, (12 + 10 * place) * US)
        at = (100 + 20 * place) * US
        work.append(Work((at, at + 20 * US), call, ADD))
        ranges += _called(names[place % len(names)], work[-1], _tensor(size), _tensor(size))
    if part:
        ranges.append(Range(part, (5 * US, 99 * US)))
    return Story(work, ranges)


def _interrupted(story: Story) -> Story:
    """Make the second kernel a product."""
    first, second, *others = story.work
    return replace(story, work=[first, replace(second, name=TC_GEMM), *others])


def _short(story: Story) -> Story:
    """Shorten each kernel to 1 us."""
    return replace(story, work=[replace(each, at=(each.at[0], each.at[0] + US))
                                for each in story.work])  # fmt: skip


def _clipped(story: Story) -> Story:
    """Call everything from `clip_grad_norm_`."""
    ranges = [replace(each, text=CLIPS) if "traceMarker" in each.text else each
              for each in story.ranges]  # fmt: skip
    return Story(story.work, ranges)


def _gap(begin: int, *api: Api, text: str | None = None) -> Story:
    """Idle from 110 us until work is launched at `begin` us."""
    ranges = [Range(text, (111 * US, (begin - 1) * US))] if text else []
    return Story([_busy(), _busy(begin=begin)], ranges, list(api))


def _on_cpu(name: str = "adamw") -> Story:
    return replace(_gap(2000), ranges=[op(name, (111 * US, 1999 * US))])


def _in_node(inner: str) -> Story:
    """Run a node of autograd on the CPU, with an op inside it."""
    names = ("autograd::engine::evaluate_function: XBackward0", "XBackward0", inner)
    ranges = [
        Range(encode_seq(name, seq=3), ((111 + place) * US, (1999 - place) * US))
        for place, name in enumerate(names)
    ]
    return replace(_gap(2000), ranges=ranges)


def _two_gpus(begin: int, called: int) -> Story:
    """Run work on GPU 0, on GPU 1 from 110 to 310 us, and on GPU 0 again from `begin` us on."""
    return Story([
        _busy(),
        Work((110 * US, 310 * US), (5 * US, 9 * US), TC_GEMM, device=1),
        Work((begin * US, (begin + 200) * US), (called * US, (called + 4) * US), TC_GEMM),
    ])  # fmt: skip


def _together(story: Story) -> Story:
    """Lengthen the last kernel to 600 us, during 400 of which GPU 1 works, too."""
    *first, last = story.work
    begin, _ = last.at
    both = [
        replace(last, at=(begin, begin + us * US), device=gpu) for gpu, us in ((0, 600), (1, 400))
    ]
    return replace(story, work=[*first, *both])


def _conv(*names: str, image: tuple[int, ...] = (56, 56)) -> Story:
    w = _tensor(64, 64, *(min(3, size) for size in image), dtype="float16")
    x = _tensor(32, 64, *image, dtype="float16")
    work = [
        Work((100 * US + place * 50 * US, 150 * US + place * 50 * US),
             ((10 + place) * US, (10 + place) * US + 500), name)
        for place, name in enumerate(names)
    ]  # fmt: skip
    return Story(
        work, [op(f"conv{len(image)}d", (9 * US, 20 * US), x, w, mod="torch.nn.functional")]
    )


def _backward(name: str, *inner: Range) -> Story:
    node = encode_seq(f"autograd::engine::evaluate_function: {name}", seq=3)
    inside = encode_seq(name, seq=3)
    work = _busy(begin=10)
    return Story([work], [Range(node, (US, 90 * US)), Range(inside, (2 * US, 80 * US)), *inner])


def _on_host(at: tuple[int, int], name: str = "aten::x") -> Work:
    return Work(at, at, name, schema.CPU, grid=None)


def _nested(around: tuple[int, int], *texts: str) -> list[Range]:
    """Put ranges around some time, each inside the one before."""
    return [
        Range(text, (around[0] - 20 + depth, around[1] + 20 - depth))
        for depth, text in enumerate(texts)
    ]


def _reentrantly_checkpointed(steps: int) -> Story:
    """Run two products in nodes of reentrant checkpoints, and then go back over them."""
    work: list[Work] = []
    ranges: list[Range] = []

    def run(begin: int, *texts: str) -> None:
        bounds = (begin * US, (begin + 9) * US)
        work.append(_on_host(bounds))
        ranges.extend(_nested(bounds, *texts))

    def node(name: str, seq: int) -> list[str]:
        return [encode_seq(f"{engine}{name}Backward", seq=seq) for engine in (ENGINE, "")]

    product = (encode_trace(["/src/net.py:5"]), encode_op(Call("torch", "linear", ROWS.tensors)))
    for step in range(steps):
        now, seq = 1 + 100 * step, 4 * step
        for call in (0, 1):
            run(now + 10 * call, encode_seq("CheckpointFunction", seq=seq + call), *product)
        for call, begin in ((1, now + 30), (0, now + 60)):
            around = ((begin - 1) * US, (begin + 23) * US)
            ranges += _nested(around, *node("CheckpointFunction", seq + call))
            run(begin, encode_seq("aten::linear", seq=seq + 3 - call))
            run(begin + 10, *node("Addmm", seq + 3 - call))
    return Story(work, ranges)


def _copied(call_us: int, way: str = "HtoD") -> Story:
    held = copy((20 * US, 120 * US), (10 * US, (10 + call_us) * US), way=way)
    return Story([_busy(5), held])


def _migrated(begin: int, end: int) -> Story:
    """Move pages from `begin` to `end` us; a kernel runs from 10 to 110."""
    pages = copy((begin * US, end * US), None)
    return Story([_busy(), replace(pages, name="[CUDA Unified Memory memcpy HtoD]")])


STEP = "Optimizer.step#Adam.step"
LOADING = "enumerate(DataLoader)#_Iter.__next__"
COMPILING = "_compile.compile_inner (dynamo_timed)"
CLIPS = str({"traceMarker": ["/src/train.py:3", "/site-packages/torch/nn/utils/clip_grad.py:3"]})
INIT = Range(encode_layer("net"), (3 * US, 70 * US))
CALLED = op("matmul", (8 * US, 18 * US), *HALF)
LOOKS_FOR_NAN = Range("aten::_is_any_true", (82 * US, 88 * US))


def _waves(
    blocks: int, name: str = TC_GEMM, tensors: tuple[Tensor, ...] = HALF, length: int = 5000
) -> Story:
    """Run a product in a number of blocks; 16 fit on each of 108 SMs."""
    work = replace(_busy(length, name, begin=10, grid=blocks), regs=32, smem=1024)
    return Story([work], _called("matmul", work, *tensors))


def _moved(times: float) -> Story:
    """Add two vectors, with a multiple of the least traffic by counters."""
    counters = f'{{"source":"ncu","dram_bytes":{times * 3 * 4 * (1 << 22)}}}'
    work = replace(_busy(60, ADD, begin=10), counters=counters)
    return Story([work], _called("add", work, *[_tensor(1 << 22)] * 2))


def _sized(*grids: int) -> Story:
    """Run a kernel over ever larger tensors, with these grids."""
    work, ranges = [], []
    for place, grid in enumerate(grids):
        work.append(_busy(name="kernel_of_mine", begin=150 * place, grid=grid))
        ranges += _called("cumsum", work[-1], _tensor(1 << (16 + place)))
    return Story(work, ranges)


def _cpu(
    *at_us: tuple[int, int], name: str = "mm", tensors: tuple[Tensor, ...] = (), between: str = ""
) -> Story:
    """Run ops on the CPU, each of one row; `between` names a range from the first to the second."""
    bounds = [(begin * US, end * US) for begin, end in at_us]
    work = [_on_host(at, f"aten::{name}") for at in bounds]
    ranges = [
        each
        for begin, end in bounds
        for each in (
            trace((begin - 2, end + 2), "/src/net.py:5"), op(name, (begin - 1, end + 1), *tensors)
        )
    ]  # fmt: skip
    if between:
        ranges.append(Range(between, (bounds[0][1] + 2, bounds[1][0] - 10)))
    return Story(work, ranges)


def _optimizer(name: str) -> Story:
    """Run two ops of an optimizer's step on one parameter, on the CPU."""
    story = _cpu((1000, 1100), (1101, 1200), name="mul_", tensors=(_tensor(256, 256),))
    inside = [each for each in story.ranges if "traceMarker" not in each.text]
    line = trace((990 * US, 1210 * US), "/src/net.py:5")
    step = Range(f"Optimizer.step#{name}.step", (995 * US, 1205 * US))
    return Story(story.work, [line, step, *inside])


def _into_new_memory(story: Story, pause_ns: int = 0) -> Story:
    """Make a new tensor by the first op; the second, in place, takes 10 us after a pause."""
    first, second = story.work
    begin = second.at[0] + pause_ns
    second = replace(second, at=(begin, begin + 10 * US), call=(begin, begin + 10 * US))
    return replace(story, work=[replace(first, name="aten::sqrt"), second])


def _unrecorded(begin: int, end: int, *rows: Work, name: str = "tensor") -> Story:
    """Run torch.tensor() between two ops on the CPU, with or without rows of its own."""
    story = _cpu((0, 100), (2000, 2100))
    line = trace((begin * US - 1, end * US + 1), "/src/net.py:9")
    called = op(name, (begin * US, end * US))
    return Story([*story.work, *rows], [*story.ranges, line, called])


@dataclass(frozen=True)
class Called:
    """A call on the CPU: the op, its line, how long it and its backward pass take, in us."""

    name: str
    tensors: tuple[Tensor, ...] = ()
    forward: int = 10
    backward: int = 0
    line: int = 5
    node: bool = False
    """Whether it makes a node of autograd's graph."""
    views: int = 0
    """Nodes that its own views make first."""
    layer: str = ""
    args: tuple[int, ...] = ()
    inside: tuple[str, ...] = ()
    """Lines of a library that its line calls."""


def _launched(story: Story) -> Story:
    """Add a kernel to each op, launched at once and as long as the op."""
    return replace(story, work=[
        Work((at + 1, end + 1), (at, at + 1), TC_GEMM)
        for at, end in (each.at for each in story.work)
    ])  # fmt: skip


def _steps(
    *calls: Called, count: int = 1, text: str = "", numbers: bool = False, pause_ns: int = 50
) -> Story:
    """Make the calls, then the backward passes, `count` times, one soon after the other.

    `text` names a range around each time; with `numbers`, PyTorch's own ranges state the next node.
    """
    work: list[Work] = []
    ranges: list[Range] = []
    now, seq = 1000, 0

    def run(length: int, *texts: str) -> None:
        nonlocal now
        bounds = (now, now + length * US)
        ranges.extend(_nested(bounds, *texts))
        work.append(_on_host(bounds))
        now = bounds[1] + pause_ns

    for step in range(count):
        begin, backward = now, []
        for call in calls:
            said = encode_op(Call("torch", call.name, (*call.tensors, *call.args)))
            line = encode_trace([f"/src/net.py:{call.line}", *call.inside])
            layer = [encode_layer(call.layer)] if call.layer else []
            own = [encode_seq(f"aten::{call.name}", seq=seq)] if numbers or call.node else []
            if call.views:
                seq += call.views
                own.append(encode_seq("aten::mm", seq=seq))
            run(call.forward, *layer, line, said, *own)
            if call.backward:
                backward.append((call, seq))
            seq += call.node
        for call, number in reversed(backward):
            node = f"{call.name.strip('_').title()}Backward0"
            run(call.backward, encode_seq(f"{ENGINE}{node}", seq=number),
                encode_seq(node, seq=number))  # fmt: skip
        if text:
            ranges.append(Range(f"{text} {step}", (begin - 30, now - 25)))
    return Story(work, ranges)


def _around(story: Story, text: str) -> Story:
    """Put a range around all work."""
    at = story.work[0].at[0] - 100, story.work[-1].at[1] + 100
    return Story(story.work, [*story.ranges, Range(text, at)])


def _generated(story: Story) -> Story:
    """Replace the last kernel by one that Inductor wrote for a CPU."""
    last = replace(story.work[-1], name="graph_0_cpp_fused_gelu_view_6")
    return Story([*story.work[:-1], last], story.ranges)


def _in_calls(name: str, length: int, story: Story) -> Story:
    """Put a call of an op around every `length` pieces of work."""
    parts = [story.work[at : at + length] for at in range(0, len(story.work), length)]
    calls = [op(name, (part[0].at[0] - 25, part[-1].at[1] + 25), SOME) for part in parts]
    return Story(story.work, [*story.ranges, *calls])


ENGINE = "autograd::engine::evaluate_function: "
SOME = _tensor(16, 32)
WIDE = _tensor(256, 4096)
WEIGHT = _tensor(32, 32)
ROW = _tensor(1, 32)
ROWS = Called("linear", (_tensor(64, 32), WEIGHT), 100, node=True)


def _grown(count: int, by: int, *, layers: bool = False, pause_ns: int = 50) -> Story:
    """Join ever larger tensors, by a number of rows each time, and compute a little."""
    calls = [
        Called("cat", (_tensor(64 + place * by, 256), _tensor(64, 256)), 50,
               layer=f"dense.{place}" if layers else "")
        for place in range(count)
    ]  # fmt: skip
    return _steps(*calls, pause_ns=pause_ns)


def _checkpointed(nodes: int) -> Story:
    """Repeat a forward call in a backward node, then run each of its own backward nodes."""
    at = [(1000 + 20 * US * place, 1000 + 20 * US * place + 10 * US) for place in range(2 * nodes)]
    call, whole = (900, at[nodes - 1][1] + 100), (700, at[-1][1] + 300)
    node, line = "CheckpointFunctionBackward", encode_trace(["/src/net.py:6"])
    called = encode_op(Call("torch", "tanh", (SOME,)))
    ranges = _nested(whole, line, encode_seq(f"{ENGINE}{node}", seq=0), encode_seq(node, seq=0))
    ranges += _nested(call, encode_layer("net"), line, called)
    for place, (begin, end) in enumerate(at):
        seq = 1 + min(place, 2 * nodes - 1 - place)
        names = ("aten::tanh",) if place < nodes else (f"{ENGINE}TanhBackward0", "TanhBackward0")
        ranges += _nested((begin, end), *(encode_seq(name, seq=seq) for name in names))
    return Story([*map(_on_host, at)], ranges)


SHORT = [(at, at + 10) for at in range(0, 1000, 50)]
DOUBLE = (_tensor(512, 512, dtype="float64"), _tensor(512, 512, dtype="float64"))
DOUBLE_IMAGES = (_tensor(8, 3, 64, 64, dtype="float64"), _tensor(4, 3, 3, 3, dtype="float64"))
FILLED = _on_host((101 * US, 1990 * US), "aten::fill_")
T4 = {"name": "Tesla T4", "cc_major": 7, "cc_minor": 5, "sm_count": 40}
VOLTA = {"name": "Tesla V100-SXM2-16GB", "cc_major": 7, "cc_minor": 0, "sm_count": 80}

MI300X = {"name": "AMD Instinct MI300X", "cc_major": 9, "cc_minor": 4, "sm_count": 304}
MFMA = "Cijk_Alik_Bljk_{}_MT128x128x16_MI32x32x2x1_SN_1LDSB0_WS64_WG64_4_1"


def _on(gpu: dict[str, object], story: Story, override: Override | None = None) -> Story:
    return replace(story, gpu=gpu, override=override or Override())


def _one(name: str, at: tuple[int, int], call: tuple[int, int], *ranges: Range) -> Story:
    work = Work((at[0] * US, at[1] * US), (call[0] * US, call[1] * US), name)
    return Story([_busy(), work], list(ranges))


CASES: dict[str, tuple[str, Story, float | None]] = {
    # the rule that the story is about, and others that apply; the gain of the first in us, if known
    "float32 off Tensor Cores": ("tf32", _matmul(CUDA_CORES, BIG, 8000), 8000 * (1 - 19.5 / 156)),
    "float32 on a GPU whose Tensor Cores take float16": (
        "mixed_precision", _on(VOLTA, _matmul("volta_sgemm_128x64_tn", BIG, 8000)),
        8000 - 2 * 4096**3 / 125e6),
    "GPUs that work in turn": ("gpus_in_turn", _two_gpus(begin=310, called=10), 200),
    "float32 on a GPU whose matrix cores take bfloat16": (
        "bfloat16 low_occupancy", _on(MI300X, _matmul(MFMA.format("SB"), BIG, 8000)),
        8000 * (1 - 163.4 / 1307.4)),
    "queued, but late": ("late_start", _one("late", (2000, 2010), (20, 25)), 1890),
    "float16 off Tensor Cores": ("half_precision", _matmul(HALF_CUDA_CORES, HALF, 4000),
        4000 * (1 - 78 / 312)),
    "layouts changed around convolutions": (
        "channels_last", _conv(LAYOUT, "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc"),
        50),
    "kernels launched too slowly": ("launch_bound", _gap(150), 45),
    "chains of element-wise kernels": ("unfused_pointwise", _chain(1 << 20, 1 << 20, 1 << 20),
        60 - 12 * 1.048576 / 1.1664),  # the bytes of one, at 0.75 of 1555 GB/s
    "chains of element-wise ops on a CPU": (
        "unfused_pointwise", _steps(Called("mul", (ROW, ROW)), Called("add", (ROW, ROW))), None),
    "attention of separate kernels": (
        "eager_attention host_work launch_bound under_roof unfused_pointwise",
        Story(*told(*attention())), None),
    "an optimizer's chains": ("unfused_optimizer", _chain(1 << 20, 1 << 20, part=STEP), 20),
    "an optimizer's ops on a CPU": ("unfused_optimizer", _optimizer("AdamW"), 100),
    "waiting for the GPU": (
        "synchronisation launch_bound",
        _gap(160, Api("cudaStreamSynchronize", (20 * US, 130 * US))), 50),
    "allocating": ("allocation launch_bound", _gap(160, Api("cudaMalloc", (111 * US, 155 * US))),
        44),
    "a copy that holds up the host": (
        "blocking_copies launch_bound", _gap(160, Api("cudaMemcpy", (111 * US, 155 * US))), 44),
    "loading kernels": (
        "kernel_loading launch_bound tf32",
        Story([_busy(), Work((3000 * US, 3010 * US), (120 * US, 2900 * US))]), 2900 - 120),
    "the host elsewhere": ("host_work launch_bound", _gap(2000), 1890),
    "an op on the CPU beside a GPU": ("ops_on_cpu launch_bound", _on_cpu(), 1888),
    "an op of a backward pass on the CPU": ("ops_on_cpu launch_bound", _in_node("aten::mul"), 1888),
    "copies that hold up the host": ("pageable_copies blocking_copies", _copied(90), 100),
    "waiting for data": (
        "data_loading launch_bound", _gap(2000, text="enumerate(DataLoader)#_Iter.__next__"), 1888),
    "compiling": ("compilation launch_bound", _gap(2000, text=COMPILING), 1888),
    "compiling on a CPU": ("compilation", _cpu((0, 100), (2000, 2100), between=COMPILING), 1900),
    "communication alone": (
        "communication launch_bound", Story([_busy(), _busy(name=NCCL, begin=200)]), 100),
    "copies that nothing hides": ("exposed_copies", _copied(5), 100),
    "pages that move while a kernel waits": ("unified_memory", _migrated(50, 90), 40),
    "too few blocks, of ever larger tensors": (
        "low_occupancy host_work launch_bound", _sized(16, 32, 64), 100 * (3 - 112 / 108)),
    "too few blocks": ("low_occupancy", Story([_busy(grid=27)]), 75),
    "far under the roof": ("under_roof", _matmul(TC_GEMM, HALF, 20_000),
        20_000 - 2 * 4096**3 / 312e6 / 0.6),
    "computed again, by the checkpoint's node": (
        "recomputation", _backward("CheckpointFunctionBackward", CALLED), 100),
    "a last wave of few blocks": ("tail under_roof", _waves(1900), 5000 * (1 - 1900 / 1728 / 2)),
    "more traffic than needed": ("excess_traffic", _moved(2.5), 60 * (1 - 1 / 2.5)),
    "Python between short ops on a CPU": ("short_ops", _cpu(*SHORT), 19 * 40),
    "Python at something else": ("python_work", _cpu((0, 100), (2000, 2100)), 1900),
    "tensors of lists": ("python_values", _unrecorded(101, 1999), 1898),
    "tensors of lists for a GPU": (
        "python_values host_work launch_bound",
        Story(_gap(2000).work, [op("tensor", (300 * US, 1900 * US))]), 1600),
    "float64 on a CPU": ("double_precision", _cpu((0, 100), (101, 200), tensors=DOUBLE), 199 / 2),
    "data loaded on a CPU": (
        "data_loading", _cpu((0, 100), (2000, 2100), between="enumerate(DataLoader)#__next__"),
        1900),
    "a loop over small ops": ("python_loop", _steps(*[Called("tanh", (SOME,))] * 80), 10 * 79),
    "a tensor that grows": (
        "growing_cat", _grown(12, 64),  # copied again: 1/2 of the second tensor, 2/3 of the third
        50 * sum(1 - 1 / (each + 1) for each in range(1, 12))),
    "a mask made in each step": (
        "repeated_constant unused_gradients",
        _steps(Called("ones", args=(64, 64)), Called("triu", (_tensor(64, 64),)), ROWS, count=4),
        3 * 20),  # two calls, in three of four steps
    "batches of two": (
        "tiny_batches", _steps(Called("linear", (_tensor(2, 32), WEIGHT)), count=4, text="step"),
        4 * 10 * (1 - 2 / 64)),  # batches of 2 instead of 64, in 4 steps
    "gradients that nobody uses": (
        "unused_gradients", _steps(ROWS, replace(ROWS, line=6), count=3, numbers=True),
        0.4 * 5 * 100),  # of five calls, after which the next is seen to be another node
    "gradients that are looked at for NaN": (
        "anomaly_detection", _backward("MulBackward0", LOOKS_FOR_NAN), None),
    "parts of a large tensor": (
        "indexing_backward", _steps(Called("__getitem__", (WIDE,), 10, 300, node=True)), 300),
    "copies to be contiguous": ("contiguous_copies", _steps(Called("contiguous", (WIDE,))), 10),
    "computed again, by hooks": ("recomputation", _backward("MulBackward0", INIT, CALLED), 100),
}  # fmt: skip


@pytest.mark.parametrize(("applying", "story", "gain_us"), CASES.values(), ids=CASES)
def test_the_rules_with_evidence_apply_and_no_others(
    applying: str, story: Story, gain_us: float | None
) -> None:
    found, (first, *others) = _advice(story), applying.split()
    assert sorted(found) == sorted([first, *others])
    if gain_us is not None:
        assert _expected_us(found[first]) == pytest.approx(gain_us, rel=0.01)
    for advice in found.values():
        assert advice.evidence
        assert advice.gain_ns is None or advice.gain_ns > 0
        assert sum(entry.count for entry in advice.evidence) >= max(len(advice.rows), 1)


def _transforms(*names: str) -> Story:
    gemm = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc"
    return _conv(*(name for each in names for name in (each, gemm)))


def _replay(*api: Api) -> Story:
    """Idle until a graph is launched anew: two kernels by one call."""
    story = _gap(150, *api)
    first, late = story.work
    late = replace(late, api="cudaGraphLaunch", call=(130 * US, 155 * US))
    after = replace(late, at=(late.at[1] + US, late.at[1] + 50 * US))
    return Story([first, late, after], api=story.api)


def _while_busy(story: Story) -> Story:
    """Run work on another stream all the time."""
    return replace(story, work=[*story.work, Work((US, 3000 * US), (0, 500), stream=9)])


VECTOR = (_tensor(1, 4096, dtype="float16"), _tensor(4096, 4096, dtype="float16"))
WINOGRAD = (
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(cudnn::P<float, float>)",
    "void fft2d_r2c_32x32<float, false, 1u, false>(float2*, float const*, int, int)",
    "void cudnn::cnn::im2col4d_kernel<float, long>(cudnn::cnn::im2col4d_params)",
    "void flip_filter<float, float>(float*, float const*, int, int, int, int)",
)
FOLDED = "void foldedNhwcToNhwcKernel<float, float, float, true, (cudnnKernelDataType_t)0>(int)"
NVJET = "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN"
GEMV64 = "void gemv2T_kernel_val<int, int, double, double, double, double, 128, 16, 4, 4, false>(double)"  # fmt: skip # noqa: E501
GEMV = "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(float)"
STREAM_K = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SK3_SVW4_TLDS1"
FOREACH = "void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<2>>(int)"


def _read_back() -> Story:
    """Compute, copy a number to the host and wait for it, and go on late: `.item()`."""
    number = copy((112 * US, 114 * US), (12 * US, 16 * US), 4, "DtoH")
    waiting = Api("cudaStreamSynchronize", (18 * US, 130 * US))
    return Story([_busy(), number, _busy(begin=160)], _called("item", number, ROW), [waiting])


_STATES = (_tensor(1, 32, 1024, dtype="float16"),) * 2
_LSTM = Call("torch", "lstm", (_tensor(64, 32, 1024, dtype="float16"), _STATES,
                               (_tensor(4096, 1024, dtype="float16"),) * 2, False, 1))  # fmt: skip
CHANNELS_FIRST = (
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(T1)",
    "void cudnn::bn_bw_1C11_singleread<float, 512, true, 1, 2, 0>(float)",
    "void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float, float>(T1)",
    "void at::native::batch_norm_backward_kernel<float, float, float, int>(T1)",
)
REFUTED: dict[str, list[Story]] = {
    # a rule that does not apply, and why: each text that refutes it
    "allocation: the GPU had work meanwhile": [
        _while_busy(_gap(160, Api("cudaMalloc", (111 * US, 155 * US))))],
    "bfloat16: the GPU is NVIDIA's, which tf32 and mixed_precision cover": [
        _matmul(CUDA_CORES, BIG, 8000)],
    "bfloat16: the product is in half precision already": [
        _on(MI300X, _matmul(MFMA.format("BBH"), HALF, 8000))],
    "channels_last: transforms of cuDNN's algorithm: Winograd, FFT, im2col, flipped filters": [
        _transforms(*WINOGRAD)],
    "channels_last: few channels padded within channels-last: folded NHWC": [_transforms(FOLDED)],
    "channels_last: a convolution of sequences, which have no such format": [
        _conv(LAYOUT, image=(56,)), _conv(LAYOUT, image=(1, 56))],
    "communication: something is computed meanwhile": [
        _while_busy(Story([_busy(), _busy(name=NCCL, begin=200)]))],
    "compilation: something runs meanwhile": [_while_busy(_gap(2000, text=COMPILING))],
    "compilation: nothing is compiled": [_gap(2000), _gap(2000, text="compile (mine)")],
    "data_loading: the GPU had work meanwhile": [_while_busy(_gap(2000, text=LOADING))],
    "data_loading: a file or an op is called so, not a range": [
        _gap(2000, text="{'traceMarker': ['/src/dataloader.py:3']}"),
        _gap(2000, text="{'mod': 'data', 'op': 'get_batch', 'args': []}")],
    "half_precision: a vector as operand: memory limits it": [
        _matmul(HALF_CUDA_CORES, VECTOR, 4000)],
    "half_precision: the GPU has no Tensor Cores": [
        _on({"name": "Tesla P40", "cc_major": 6, "cc_minor": 1},
            _matmul(HALF_CUDA_CORES, HALF, 4000))],
    "host_work: the host was loading data, which data_loading reports": [_gap(2000, text=LOADING)],
    "host_work: torch.compile was at work, which compilation reports": [_gap(2000, text=COMPILING)],
    "host_work: an op was at work on the CPU, which ops_on_cpu reports": [_on_cpu()],
    "host_work: the host was launching": [_gap(150)],
    "kernel_loading: the GPU had work meanwhile: the launch waited for room in its queue": [
        Story([_busy(2900), _one("late", (3000, 3010), (120, 2900)).work[1]])],
    "kernel_loading: a copy, a fill or a graph took long, not a kernel's launch": [
        Story([_busy(), copy((2000 * US, 3010 * US), (120 * US, 2990 * US))]),
        _gap(3000, Api("cudaMemcpyAsync", (120 * US, 2990 * US))),
        _gap(3000, Api("cudaMemsetAsync", (120 * US, 2990 * US))),
        Story([_busy(), replace(_busy(begin=3000), call=(120 * US, 2990 * US),
                                api="cudaGraphLaunch")])],
    "late_start: a delay below 1 ms: of a stream, an event, a graph's start": [
        _one("late", (1000, 1010), (20, 25))],
    "late_start: the host launched it only then": [_gap(5000)],
    "gpus_in_turn: the GPUs are busy at the same time": [
        _two_gpus(begin=111, called=10), _together(_two_gpus(begin=310, called=10))],
    "gpus_in_turn: the host launched it only then": [_two_gpus(begin=310, called=305)],
    "mixed_precision: the GPU has TF32: Ampere and later, which tf32 covers": [
        _matmul(CUDA_CORES, BIG, 8000)],
    "mixed_precision: the GPU has no Tensor Cores": [
        _on({"name": "Tesla P40", "cc_major": 6, "cc_minor": 1},
            _matmul("maxwell_sgemm_128x64_tn", BIG, 8000))],
    "mixed_precision: a product by a vector: memory limits it": [
        _on(VOLTA, Story([_busy(8000, GEMV)]))],
    "launch_bound: what came late is the replay of a CUDA graph": [
        _replay(), _replay(Api("cudaGraphLaunch", (130 * US, 155 * US)))],
    "launch_bound: the host was loading data": [
        replace(_gap(150), ranges=[Range(LOADING, (105 * US, 161 * US))])],
    "low_occupancy: a collective, whose blocks are its channels": [
        Story([_busy(name=NCCL, grid=24)])],
    "low_occupancy: a persistent kernel, which takes the SMs that it wants, by its name or by a"
    " fixed grid": [
        Story([_busy(name=name, grid=64)]) for name in (NVJET, STREAM_K)] + [
        _sized(64, 64, 64)],
    "low_occupancy: all but a few SMs have a block": [Story([_busy(grid=104)])],
    "low_occupancy: a batch norm, which has a block for each channel, however large the batch": [
        Story([_busy(name=name, grid=64)]) for name in CHANNELS_FIRST],
    "pageable_copies: the call returns at once, as with pinned memory": [_copied(5)],
    "pageable_copies: a few bytes, as of .item()": [
        Story([_busy(5), copy((20 * US, 120 * US), (10 * US, 100 * US), 4, "DtoH")])],
    "anomaly_detection: the script looks for NaN itself, outside the backward pass": [
        _gap(160), replace(_gap(160), ranges=[LOOKS_FOR_NAN])],
    "recomputation: an op that a backward node calls for itself, in no module's forward": [
        _backward("MulBackward0", CALLED)],
    "exposed_copies: the call blocks the host, which pageable_copies reports, or is unknown": [
        _copied(90), Story([_busy(5), copy((20 * US, 120 * US), None)])],
    "exposed_copies: something is computed meanwhile": [_while_busy(_copied(5))],
    "exposed_copies: it took no time worth hiding, as a few bytes of .item()": [
        Story([_busy(5), copy((20 * US, 120 * US), (10 * US, 15 * US), 4, "DtoH")])],
    "blocking_copies: the GPU had work meanwhile": [
        _gap(160, Api("cudaMemcpy", (10 * US, 90 * US)))],
    "ops_on_cpu: the op calls the GPU's API, and so works on the GPU or waits for it": [
        replace(_on_cpu(), api=[Api("cudaEventQuery", (1000 * US, 1001 * US))])],
    "ops_on_cpu: the op makes tensors of numbers, or numbers of tensors, which python_values"
    " reports": [_on_cpu("tensor"), _on_cpu("tolist")],
    "ops_on_cpu: the op is short, or computes nothing, as a view or an empty tensor": [
        replace(_gap(2000), ranges=[op("tanh", (300 * US, 390 * US))]),
        _on_cpu("expand_as"), _in_node("aten::t")],
    "ops_on_cpu: the op waits for other ranks, as a collective on the CPU": [
        _on_cpu("allreduce_"), _on_cpu("barrier"), _on_cpu("recv_")],
    "ops_on_cpu: a thread called it that launches nothing, beside the one that the GPU waits for": [
        replace(_on_cpu(), ranges=[replace(each, thread=1) for each in _on_cpu().ranges])],
    "ops_on_cpu: the GPU had work meanwhile": [_while_busy(_on_cpu())],
    "unified_memory: copies that a call asked for": [_while_busy(_copied(5))],
    "unified_memory: pages fetched ahead of the kernels, while nothing else ran that could wait"
    " for them": [_migrated(200, 240)],
    "short_ops: a GPU does the work: what launches cost it, launch_bound reports": [_gap(150)],
    "short_ops: single pauses are long, which python_work reports": [_cpu((0, 100), (2000, 2100))],
    "short_ops: a small part of the time: every script has some": [_cpu((0, 100), (103, 200))],
    "python_work: a GPU does the work: how long it waits, host_work reports": [_gap(2000)],
    "python_work: pauses are short, which short_ops reports": [_cpu(*SHORT)],
    "python_work: the time is in ranges of data loading, which data_loading reports": [
        _cpu((0, 100), (2000, 2100), between="enumerate(DataLoader)#__next__")],
    "python_work: a line's first call of many, or a pause that few of them have": [
        _cpu((0, 100), (2000, 2100), (2101, 2200), (2201, 2300), (2301, 2400))],
    "python_work: a small part of the time: every script has some": [
        _cpu((0, 5000), (5200, 10_000))],
    "python_loop: each call is of another module: layers alike": [
        _steps(*[Called("tanh", (SOME,), layer=f"net.{place}") for place in range(80)])],
    "python_loop: the tensors are large: an op's call costs little beside its work": [
        _steps(*[Called("tanh", (_tensor(4096, 4096),), 100)] * 80),
        _steps(*[Called("tanh", (_tensor(1 << 40, 1 << 40),))] * 80)],  # beyond 64 bits
    "python_loop: a few calls a step": [
        _steps(*[Called("tanh", (SOME,))] * 8), _checkpointed(80),
        _steps(*[*[Called("add", (SOME,))] * 3, Called("tanh", (SOME,))] * 30)],
    "python_loop: the optimizer, which unfused_optimizer reports; and what a dataset does": [
        _around(_steps(*[Called("add", (SOME,))] * 80), STEP),
        _around(_steps(*[Called("add", (SOME,))] * 80), LOADING)],
    "python_loop: the loop grows a tensor, which growing_cat reports": [
        _steps(*[each for place in range(80) for each in (
            Called("tanh", (SOME,)),
            Called("cat", (_tensor(64 + 64 * place, 256), _tensor(64, 256)), 50))]),
        _steps(*[each for place in range(80) for each in (Called("tanh", (SOME,)), *(
            Called("cat", (_tensor(64 + 64 * place, 256), _tensor(64, 256)), 50,
                   inside=(f"/site-packages/cache.py:{line}",)) for line in (1, 2)))])],
    "python_loop: each turn chooses what the next one needs, as a token or an action": [
        _steps(*[Called("linear", (ROW, WEIGHT)), Called(choice, (ROW,))] * 80)
        for choice in ("multinomial", "topk")],
    "python_loop: on a CPU, a cell whose ops nn.GRU or nn.RNN calls in each turn, too": [
        _steps(*[Called("gru_cell", (SOME, SOME, WEIGHT, WEIGHT))] * 80)],
    "python_loop: each call fills a tensor of its own, as a parameter of a new model": [
        _steps(*[Called("uniform_", (SOME,))] * 80)],
    "python_loop: torch.compile made one graph of the line's ops": [
        _generated(_steps(*[Called("addmm", (SOME, SOME, WEIGHT))] * 80))],
    "python_loop: each call is of another line of a library, which the user's line calls": [
        _steps(*[Called("tanh", (SOME,), inside=(f"/x/site-packages/gp/k.py:{line}",))
                 for line in range(1, 81)])],
    "python_loop: each turn ends with a backward pass: gradients accumulate, or L-BFGS tries a"
    " step": [
        _around(_steps(Called("tanh", (SOME,), 10, 10, node=True),
                       Called("ones_like", line=6), count=80), "step 1")],
    "growing_cat: tensors of one size are joined, however often": [_grown(80, 0)],
    "growing_cat: each call is of another module, as in a dense block": [
        _grown(12, 64, layers=True)],
    "growing_cat: a small part of the time": [
        Story([*_grown(12, 64).work, _on_host((10**7, 10**9))], _grown(12, 64).ranges)],
    "repeated_constant: its size differs from step to step": [
        _steps(*[Called("ones", args=(64, 64 + place)) for place in range(8)])],
    "repeated_constant: random numbers, and buffers of zeros to be filled": [
        _steps(Called(name, args=(64, 64)), ROWS, count=4) for name in ("randn", "zeros")],
    "repeated_constant: another op makes it for itself, as an LSTM its first state": [
        _in_calls("lstm", 2, _steps(Called("ones", args=(64, 64)), ROWS, count=4))],
    "repeated_constant: made a few times, as before the loop": [
        _steps(Called("ones", args=(64, 64)), count=2)],
    "repeated_constant: a small part of the time": [
        _steps(Called("ones", args=(64, 64)), replace(ROWS, forward=1000), count=4)],
    "tiny_batches: the batch is not small, or a step's products are large": [
        _steps(Called("linear", (_tensor(4, 16, 32), WEIGHT)), count=4, text="step"),
        _steps(Called("bmm", (_tensor(1, 1, 8), _tensor(1, 8, 4096))), count=4, text="step"),
        _steps(Called("linear", (_tensor(2, 8192), _tensor(8192, 8192))), count=4, text="step"),
        _steps(*[Called("linear", (_tensor(2, 32), WEIGHT), line=line) for line in range(1, 8)],
               Called("linear", (_tensor(256, 512), _tensor(512, 512)), 100, line=9),
               count=4, text="step")],
    "tiny_batches: no steps are known: a single call has no larger batch": [
        _steps(Called("linear", (_tensor(2, 32), WEIGHT)), count=count) for count in (1, 4)],
    "tiny_batches: one line calls the ops many times a step, which python_loop reports": [
        _steps(*[Called("linear", (_tensor(2, 32), WEIGHT))] * 80, text="step")],
    "tiny_batches: on a GPU nothing is trained: who serves waits for no batch": [
        _matmul(TC_GEMM, (_tensor(1, 64), _tensor(64, 64)), 10)],
    "unused_gradients: a backward pass uses them, sooner or later": [
        _steps(replace(ROWS, backward=10), replace(ROWS, line=6, backward=10), count=3),
        _reentrantly_checkpointed(3)],
    "unused_gradients: torch.no_grad() or inference_mode() is on, or nothing needs gradients": [
        _steps(replace(ROWS, node=False), count=3),
        _steps(replace(ROWS, node=False), count=3, numbers=True),
        _steps(replace(ROWS, node=False), replace(ROWS, line=6, backward=10, views=1),
               count=3, numbers=True)],
    "unused_gradients: the capture ends before the backward pass": [
        _steps(ROWS, replace(ROWS, line=6), replace(ROWS, line=7), numbers=True),
        _steps(ROWS, *[replace(ROWS, line=6), replace(ROWS, line=7)] * 3, numbers=True)],
    "unused_gradients: the GPU is busy: its kernels are the same without gradients": [
        _launched(_steps(ROWS, replace(ROWS, line=6), count=3, numbers=True))],
    "indexing_backward: it is a small part of the time": [
        _steps(Called("__getitem__", (WIDE,), 10, 10, node=True), replace(ROWS, forward=1000))],
    "indexing_backward: the forward pass takes the time": [
        _steps(Called("__getitem__", (WIDE,), 300, 10, node=True))],
    "indexing_backward: as many rows or elements are taken as there are, which all have a"
    " gradient to add": [
        _steps(Called(name, (WIDE, Tensor((rows,), "int64")), 10, 300, node=True))
        for name, rows in (("index_select", 4096), ("embedding", 9000), ("gather", 1 << 20))],
    "indexing_backward: the gradient is sparse already": [
        _steps(Called(name, (WIDE, Tensor((3,), "int64")), 10, 300, node=True,
                      args=(False, True))) for name in ("embedding", "embedding_bag")],
    "contiguous_copies: nothing is copied: the tensor is contiguous already, or only viewed": [
        Story(_cpu((0, 100)).work, [*_cpu((0, 100)).ranges,
                                    op("contiguous", (110 * US, 111 * US), WIDE)])],
    "contiguous_copies: a small part of the time, as in most attention layers": [
        _steps(Called("contiguous", (WIDE,)), replace(ROWS, forward=1000))],
    "contiguous_copies: clone() and to(): the copy is what was asked for": [
        _steps(Called(name, (WIDE,))) for name in ("clone", "to")],
    "python_values: a GPU waits for the value, which synchronisation reports": [_read_back()],
    "python_values: it makes no tensor of values and no value of a tensor, as a view": [
        _unrecorded(101, 1999, name="view")],
    "python_values: the op computes, and so has rows of its own": [_unrecorded(100, 1999, FILLED)],
    "python_values: a small part of the time: every script has some": [_unrecorded(101, 120)],
    "double_precision: a few numbers, as a loss, a learning rate or a scalar beside a large"
    " input": [
        _cpu((0, 100), name="where", tensors=(_tensor(512, 512, dtype="bool"),
                                              _tensor(dtype="float64"), BIG[0])),
        _cpu((0, 100), tensors=(_tensor(10, dtype="float64"),))],
    "double_precision: another type: float32 and less, integers": [
        _cpu((0, 100), tensors=(_tensor(512, 512, dtype=name),))
        for name in ("float32", "bfloat16", "int64")],
    "double_precision: a copy or a conversion, whose type says nothing of what is computed": [
        _cpu((0, 100), name="clone", tensors=DOUBLE[:1]),
        Story(_copied(90).work, _called("to", _copied(90).work[1], *DOUBLE[:1]))],
    "excess_traffic: arithmetic limits it": [
        Story([replace(_matmul(TC_GEMM, HALF, 600).work[0],
                       counters='{"source":"ncu","dram_bytes":1e9}')],
              _matmul(TC_GEMM, HALF, 600).ranges)],
    "excess_traffic: nothing was measured": [
        Story([replace(_moved(3).work[0], counters=None)], _moved(3).ranges)],
    "tail: a persistent kernel, whose blocks take tiles as they come": [_waves(1900, NVJET)],
    "tail: memory limits it: fewer blocks then share the same bandwidth": [
        _waves(1900, tensors=(_tensor(1, 1 << 13, dtype="float16"),
                              _tensor(1 << 13, 1 << 13, dtype="float16")), length=100)],
    "tail: a single wave, which low_occupancy reports, or so many that the last hardly matters": [
        _waves(900), _waves(1728 * 6 + 10)],
    "tail: the kernel is nearer to its peak than such a tail allows": [_waves(1900, length=600)],
    "synchronisation: more work was queued when the wait ended": [
        Story([_busy(), _busy(begin=6, length=300)],
              api=[Api("cudaStreamSynchronize", (20 * US, 130 * US))])],
    "tf32: the GPU has no TF32: Volta, Turing": [
        _on(VOLTA, _matmul(CUDA_CORES, BIG, 8000)),
        _on(VOLTA, _matmul(CUDA_CORES, BIG, 8000), Override(peak_flops=15e12)),
        _on({"name": "GPU", "cc_major": None, "cc_minor": None},
            _matmul(CUDA_CORES, BIG, 8000), Override(peak_flops=15e12))],
    "tf32: the kernel used Tensor Cores": [
        _matmul("ampere_tf32_s1688gemm_fp32_128x128_ldg8", BIG, 8000)],
    "tf32: no shapes are known, and by its name the kernel multiplies by a vector, or is not"
    " float32": [
        story for name in (GEMV, "ampere_dgemm_64x64_tn")
         for story in (Story([_busy(8000, name)]), _matmul(name, (), 8000))],
    "under_roof: too short: a launch and its drain take the time": [_matmul(TC_GEMM, HALF[:1], 4)],
    "under_roof: too few blocks, which low_occupancy reports": [
        Story([replace(_busy(20_000, TC_GEMM, begin=10), grid=grid)],
              _matmul(TC_GEMM, HALF, 20_000).ranges) for grid in ((9, 1, 1), None)],
    "under_roof: one of a recurrent layer's kernels, for all steps or for one: their FLOPs are"
    " not known apart": [Story([_busy(20_000, begin=10), _busy(8, begin=40)],
                               [Range(encode_op(_LSTM), (9 * US, 50 * US))])],
    "unfused_optimizer: one kernel takes many parameters: foreach, fused": [
        Story([replace(each, name=FOREACH) for each in _chain(1 << 20, 1 << 20).work],
              _chain(1 << 20, 1 << 20, part=STEP).ranges)],
    "unfused_optimizer: gradients are clipped, which no constructor of an optimizer changes": [
        _clipped(_chain(1 << 20, 1 << 20, part=STEP)),
        _chain(1 << 20, 1 << 20, part=STEP, names=("clip_grad_norm_",))],
    "unfused_optimizer: on a CPU, an optimizer that has no fused form there": [
        _optimizer("RMSprop")],
    "eager_attention: a router of experts, or another softmax that no product of its sizes"
    " follows": [Story(*told(*attention()[:3]))],
    "eager_attention: fewer than 64 queries, or heads narrower than 32: fused kernels were no"
    " faster there": [Story(*told(*attention(queries=7))), Story(*told(*attention(width=16)))],
    "eager_attention: attention is fused already": [Story([_busy(name="flash_fwd_kernel")])],
    "unfused_pointwise: one op after another on different tensors: a loop, AccumulateGrad,"
    " foreach, DDP": [
        _chain(1 << 20, 1 << 20, 1 << 20, names=(name,))
        for name in ("add", "_foreach_add_", "AccumulateGrad")],
    "unfused_pointwise: products, or other kernels that are not fused, between them": [
        _interrupted(_chain(1 << 20, 1 << 20, 1 << 20))],
    "unfused_pointwise: one kernel of the chain's inputs and outputs would take as long": [
        _short(_chain(1 << 8, 1 << 8))],
}  # fmt: skip


@pytest.mark.parametrize(("rule", "story"), [
    pytest.param(refutation.partition(":")[0], story, id=f"{refutation} {place}")
    for refutation, stories in REFUTED.items()
    for place, story in enumerate(stories)
])  # fmt: skip
def test_a_refuted_rule_does_not_apply(rule: str, story: Story) -> None:
    assert rule not in _advice(story)


def test_kernels_of_unknown_grid_are_not_short_of_thread_blocks() -> None:
    assert "low_occupancy" not in _advice(Story([replace(_busy(), grid=None)]))


def test_what_happens_outside_the_steps_has_no_batch() -> None:
    context = _context(CASES["batches of two"][1])
    assert tiny_batches(context)
    context.once = True
    assert tiny_batches(context) is None


def test_every_refutation_is_stated_and_tested() -> None:
    stated = {f"{name}: {text}" for name, rule in rules().items() for text in rule.refuted_by}
    untested, unstated = stated - REFUTED.keys(), REFUTED.keys() - stated
    assert not untested, "write stories of these refutations into REFUTED, above"
    assert not unstated, "no rule states these refutations of REFUTED"
    silent = [name for name, rule in rules().items() if not rule.refuted_by]
    assert not silent, "state in @rule(...) what would refute these"


def test_idle_time_counts_for_one_rule() -> None:
    """The part of a gap in which data were loaded is data loading; the rest is the host's."""
    story = _gap(4000, text=LOADING)
    story.ranges[0] = Range(LOADING, (111 * US, 2000 * US))
    found = _advice(story)
    loading, host = (found[name].gain_ns or 0 for name in ("data_loading", "host_work"))
    assert loading == (2000 - 111) * US
    assert host == (111 - 110 + 4000 - 2000) * US


@pytest.mark.few(9)
@pytest.mark.parametrize("case", CASES)
def test_advice_is_of_the_chosen_rows_alone(case: str) -> None:
    """As chosen with `--where`, without idle time; without rows there is none."""
    _, story, _ = CASES[case]
    net = capture(story.work, story.api, story.ranges)
    table = Table(parse(net), story.override)
    for place in range(table.records.rows + 1):
        rows = np.arange(table.records.rows) == place
        for advice in advise(RuleContext(table, None, net, rows)):
            assert set(advice.rows) <= {place}, advice.rule
            assert (advice.gain_ns or 0) <= table.duration_ns[rows].sum()


def test_data_loading_counts_the_loads_that_the_gpu_waited_for() -> None:
    """Not those in other steps, or those hidden by work."""
    story = _gap(4000, text=LOADING)
    story.ranges.append(Range(LOADING, (20 * US, 100 * US)))  # while the first kernel ran
    (evidence,) = _advice(story)["data_loading"].evidence
    assert evidence.count == 1


@pytest.mark.parametrize(("inside_us", "expected"), [(100, 6), (1500, 9)])
def test_data_loading_names_the_line_that_takes_the_time(inside_us: int, expected: int) -> None:
    """The dataset's, unless a stack inside, such as that of collate_fn, takes longer."""
    story = _gap(4000, text=LOADING)
    story.ranges[0] = Range(LOADING, (111 * US, 2111 * US))
    later = (200 + inside_us) * US
    story.ranges.extend(
        [
            Range(encode_trace(["/src/net.py:3", "/src/data.py:6"]), (110 * US, 2112 * US)),
            Range(encode_trace(["/src/net.py:3", "/src/data.py:9"]), (200 * US, later)),
            Range(encode_trace(["/src/data.py:8"]), (201 * US, 202 * US)),
        ]
    )
    (evidence,) = _advice(story)["data_loading"].evidence
    assert evidence.line == f"/src/data.py:{expected}"


def test_chains_of_unmarked_kernels() -> None:
    """Without ops, different kernels make a chain; repetitions of one do not."""
    other = ADD.replace("CUDAFunctor_add", "CUDAFunctor_mul")
    story = _chain(1 << 20, 1 << 20, 1 << 20)
    bare = Story(story.work)
    assert "unfused_pointwise" not in _advice(bare)
    bare.work[1] = replace(bare.work[1], name=other)
    assert "unfused_pointwise" in _advice(bare)


def test_every_rule_has_a_case() -> None:
    missing = rules().keys() - {told.split()[0] for told, *_ in CASES.values()}
    assert not missing, "write a story of each of these rules into CASES, above"


def _indexed(name: str, *by: str) -> Story:
    """Take a small part of a tensor, by an index of a type or by a slice."""
    index = [Tensor((3,), dtype) for dtype in by]
    return _steps(Called(name, (WIDE, *index), 10, 300, node=True))


def _with_group_norm(story: Story) -> Story:
    norm = _busy(name="void at::native::RowwiseMomentsCUDAKernel<float>(T1)", begin=300)
    called = _called("group_norm", norm, _tensor(32, 64, 56, 56))
    return replace(story, work=[*story.work, norm], ranges=[*story.ranges, *called])


_COPIED = replace(_gap(4000), work=[_busy(), copy((4010 * US, 4020 * US), (4000 * US, 4005 * US))])
_FLASH = _busy(20_000, "flash_fwd_kernel", begin=10)
_HEADS = [_tensor(8, 16, 1024, 64, dtype="float16")] * 3
_WRITTEN = Story(*told(*attention(), dtype="float32"))
_CALLED = op("scaled_dot_product_attention", (-1 * US, 1000 * US))
_CHAIN = _chain(1 << 20, 1 << 20, 1 << 20)


def _with_kernel(name: str) -> Story:
    """Run an op far below its roof in a program with a kernel of torch.compile."""
    slow = _busy(20_000, ADD, begin=10)
    return Story([slow, _busy(1, name, begin=30_000)], _called("add", slow, *BIG))


_COMPILED = replace(_CHAIN, work=[*_CHAIN.work, _busy(1, "triton_poi_fused_add_0", begin=500)])
_TO = op("to", (9 * US, 101 * US))
_CALLED_LATE = replace(_gap(150), ranges=_called("matmul", _busy(), *HALF))
ACTIONS = {
    "a copy to the GPU": (
        "pageable_copies", replace(_copied(90), ranges=[_TO]), "pin_memory=True"),
    "a copy to the host": (
        "pageable_copies", replace(_copied(90, "DtoH"), ranges=[_TO]), "before .cpu()"),
    "a copy to the host that nothing hides": (
        "exposed_copies", _copied(5, "DtoH"), "before .cpu()"),
    "host work before a copy": ("host_work", _COPIED, "prepare ahead what is copied to the GPU"),
    "host work before a kernel": ("host_work", _gap(4000), "a CPU profiler"),
    "modules loaded in a gap": (
        "host_work", _gap(4000, Api("cuModuleLoadDataEx", (200 * US, 210 * US))),
        "capture after warm-up"),
    "modules loaded before a gap": (
        "host_work", _gap(4000, Api("cuModuleLoadDataEx", (5 * US, 20 * US))), "a CPU profiler"),
    "attention far below its roof": (
        "under_roof", Story([_FLASH], _called("scaled_dot_product_attention", _FLASH, *_HEADS)),
        "sdpa_kernel"),
    "a compiled program": ("under_roof", _with_kernel("triton_poi_fused_add_0"), "max-autotune"),
    "a compiled program with FlexAttention": (
        "under_roof", _with_kernel("triton_tem_fused_0"), "max-autotune"),
    "a program tuned by max-autotune": (
        "under_roof", _with_kernel("triton_tem_fused_mm_0"), "implementation of the op"),
    "products by the vendor's kernels": (
        "under_roof", _matmul(TC_GEMM, HALF, 20_000), "fewer, larger products"),
    "products of odd sizes": (
        "under_roof", _matmul(TC_GEMM, (_tensor(4096, 1001, dtype="float16"),
                                        _tensor(1001, 4096, dtype="float16")), 1000),
        "pad the sizes of these products"),
    "attention of separate kernels": (
        "eager_attention", _WRITTEN, "call torch.nn.functional.scaled_dot_product_attention"),
    "attention that is called, but not fused": (
        "eager_attention", replace(_WRITTEN, ranges=[_CALLED, *_WRITTEN.ranges]),
        "on a CPU with dropout_p=0"),
    "rows by their numbers": ("indexing_backward", _indexed("__getitem__", "int64"), "F.embedding"),
    "rows of an embedding": ("indexing_backward", _indexed("embedding", "int64"), "nn.Embedding"),
    "sums of rows": ("indexing_backward", _indexed("embedding_bag", "int64"), "nn.EmbeddingBag"),
    "a slice": ("indexing_backward", _indexed("__getitem__"), "layer(x[:, i])"),
    "rows by a mask": ("indexing_backward", _indexed("__getitem__", "bool"), "layer(x[:, i])"),
    "a wait": (
        "synchronisation", replace(
            _gap(160, Api("cudaStreamSynchronize", (20 * US, 130 * US))),
            ranges=_called("nonzero", _busy(), *HALF)), "boolean masks"),
    "a wait for all streams": (
        "synchronisation", replace(
            _gap(160, Api("cudaDeviceSynchronize", (20 * US, 130 * US))),
            ranges=_called("matmul", _busy(), *HALF)), "torch.cuda.synchronize()"),
    "launches": ("launch_bound", _CALLED_LATE, "use CUDA graphs, torch.compile(mode="),
    "launches for a device without CUDA graphs": (
        "launch_bound", _on({"name": "MTIA"}, _CALLED_LATE), "use torch.compile, larger batches"),
    "an op on the CPU beside an XPU": (
        "ops_on_cpu", _on({"name": "Intel(R) Arc(TM) B580 Graphics"}, _on_cpu()), "device='xpu'"),
    "layouts of images": ("channels_last", _conv(LAYOUT), "torch.channels_last)"),
    "layouts of images between norms of groups": (
        "channels_last", _with_group_norm(_conv(LAYOUT)), "may put channels first again"),
    "layouts of volumes": (
        "channels_last", _conv(LAYOUT, image=(8, 56, 56)), "torch.channels_last_3d)"),
    "chains": ("unfused_pointwise", _CHAIN, "torch.compile"),
    "chains left by torch.compile": ("unfused_pointwise", _COMPILED, "graph_breaks"),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "story", "words"), ACTIONS.values(), ids=ACTIONS)
def test_the_action_fits_the_cause(rule: str, story: Story, words: str) -> None:
    action = _advice(story)[rule].action
    assert words in action
    assert words == "F.embedding" or "F.embedding" not in action
    assert words == "graph_breaks" or "graph_breaks" not in action
    assert words == "may put channels first again" or "GroupNorm" not in action


@pytest.mark.parametrize("number", ["0/0", "!0/2/0"])
def test_code_that_is_compiled_once_needs_no_other_shapes(number: str) -> None:
    once, again, unknown = (
        _advice(_gap(2000, text=f"inner_data: compile_id={each}"))["compilation"].action
        for each in (number, "3/1", "None")
    )
    assert once == "capture after warm-up"
    assert again == unknown
    assert again.startswith("keep shapes and types the same")


@pytest.mark.parametrize(("made", "action"), [
    (1, "capture after warm-up, or look at later --steps: a CUDA graph is made"),
    (4, "keep sizes the same, or pad them to a few, so that CUDA graphs are made once"),
])  # fmt: skip
def test_graphs_made_in_most_steps_are_no_warm_up(made: int, action: str) -> None:
    work, ranges, api, begin = [], [], [], 0
    for step in range(4):
        makes_ns = 3000 * US * (step < made)
        work.append(_busy(begin=begin))
        end = (begin + 140) * US + makes_ns
        ranges.append(Range(f"step {step}", (begin * US, end)))
        if makes_ns:
            api.append(Api("cudaGraphInstantiate", (end - makes_ns, end)))
        begin = end // US + 20
    story = Story([*work, _busy(begin=begin)], ranges, api)
    assert _advice(story)["host_work"].action.startswith(action)


@pytest.mark.parametrize(
    ("allocating", "warm_up"),
    [((0,), True), ((0, 1, 2), True), ((0, 3, 6), False), (range(8), False)],
)
def test_allocations_that_go_on_are_not_warm_up(allocating: Sequence[int], warm_up: bool) -> None:  # noqa: FBT001 - a parameter
    """Where memory is full, the allocator frees and allocates again in some steps, also late."""
    work, ranges, api = [], [], []
    for step in range(8):
        begin = 400 * step
        work += [_busy(begin=begin), _busy(begin=begin + 160)]
        ranges.append(Range(f"step {step}", ((begin - 1) * US, (begin + 300) * US)))
        ranges += _called("matmul", work[-1], *HALF)
        if step in allocating:
            api.append(Api("cudaMalloc", ((begin + 111) * US, (begin + 155) * US)))
    action = _advice(Story(work, ranges, api))["allocation"].action
    assert ("warm-up" in action) == warm_up


@pytest.mark.parametrize(("stream", "apart"), [(7, False), (20, True)])
def test_collectives_on_a_stream_of_their_own_are_not_told_to_move(
    stream: int,
    apart: bool,  # noqa: FBT001 - a parameter
) -> None:
    product = replace(_busy(), stream=7)
    collective = replace(_busy(name=NCCL, begin=200), stream=stream)
    story = Story([product, collective], _called("matmul", product, *HALF))
    action = _advice(story)["communication"].action
    assert ("on a stream of their own" in action) != apart
    assert "DDP" not in action  # nothing has a gradient


@pytest.mark.parametrize(("kind", "group", "way"), [
    ("allreduce", "default_pg", "earlier (DDP bucket_cap_mb)"),
    ("_allgather_base", "default_pg", "earlier (FSDP prefetch)"),
    ("send", "default_pg", "earlier (more micro-batches of a pipeline)"),
    ("alltoallv", "default_pg", "or compute more of the batch"),
    ("allreduce", "TP", "or compute more of the batch"),
])  # fmt: skip
def test_collectives_start_earlier_by_what_starts_their_kind(
    kind: str, group: str, way: str
) -> None:
    said = json.dumps({"name": kind, "description": group})
    late = replace(_busy(name=NCCL, begin=200), collective=said)
    trained = _backward("MmBackward0")
    story = replace(trained, work=[*trained.work, late])
    assert way in _advice(story)["communication"].action


@pytest.mark.parametrize(("mod", "name", "way"), [
    ("torch.distributed", "all_reduce", ""),
    ("torch.distributed", "all_gather", ""),
    ("_c10d_functional", "wait_tensor", ""),
    ("_c10d_functional", "all_gather_into_tensor", ""),
    ("torch.distributed", "all_gather_into_tensor", "FSDP prefetch"),
    ("c10d", "allreduce_", "DDP bucket_cap_mb"),
])  # fmt: skip
def test_collectives_that_a_script_calls_are_not_told_of_ddp_and_fsdp(
    mod: str, name: str, way: str
) -> None:
    late = _busy(name=f"{mod}::{name}", begin=200)
    begin, end = late.call or (0, 0)
    call = op(name, (begin - US, end + US), SOME, mod=mod)
    trained = _backward("MmBackward0", call)
    action = _advice(replace(trained, work=[*trained.work, late]))["communication"].action
    assert ("(" in action) == bool(way)
    assert way in action


@pytest.mark.parametrize(("scripts_us", "told"), [(20, True), (300, False)])
def test_ddp_is_not_told_where_most_is_called_by_the_script(scripts_us: int, told: bool) -> None:  # noqa: FBT001 - a parameter
    """As where losses are averaged over ranks for a log."""
    gradients = _busy(name="c10d::allreduce_", begin=200)
    logged = _busy(scripts_us, "torch.distributed::all_reduce", begin=400)
    calls = [op("allreduce_", gradients.call or (0, 0), SOME, mod="c10d"),
             op("all_reduce", logged.call or (0, 0), SOME, mod="torch.distributed")]  # fmt: skip
    trained = _backward("MmBackward0", *calls)
    story = replace(trained, work=[*trained.work, gradients, logged])
    assert ("DDP" in _advice(story)["communication"].action) == told


def test_barriers_are_not_told_to_start_earlier() -> None:
    product, late = _busy(), _busy(name=NCCL, begin=200)
    begin, end = late.call or (0, 0)
    call = op("barrier", (begin - US, end + US), mod="torch.distributed")
    story = Story([product, late], [*_called("matmul", product, *HALF), call])
    advice = _advice(story)["communication"]
    assert advice.action.startswith("leave out barriers that nothing needs; if ranks differ")
    waits = "pyprof ranks shows for whom the others wait, which is most of this time"
    assert advice.if_ranks_wait == f"{waits}; leave out barriers that nothing needs"


def test_all_reduces_of_a_training_whose_backward_pass_is_unmarked_are_of_gradients() -> None:
    product, late, update = _busy(), _busy(name=NCCL, begin=200), _busy(name=ADD, begin=400)
    ranges = [*_called("matmul", product, *HALF), Range(STEP, (399 * US, 410 * US))]
    action = _advice(Story([product, late, update], ranges))["communication"].action
    assert "earlier (DDP bucket_cap_mb)" in action


@pytest.mark.parametrize(("slow", "loads"), [(1, True), (4, False)])
def test_slow_launches_of_most_steps_are_not_loading(slow: int, loads: bool) -> None:  # noqa: FBT001 - a parameter
    work, ranges = [], []
    for step in range(4):
        begin = 4000 * step
        called = (begin + 120, begin + (2900 if step < slow else 125))
        work += [_busy(begin=begin), Work(((begin + 3000) * US, (begin + 3010) * US),
                                          (called[0] * US, called[1] * US))]  # fmt: skip
        ranges.append(Range(f"step {step}", ((begin - 1) * US, (begin + 3500) * US)))
    action = _advice(Story(work, ranges))["kernel_loading"].action
    assert ("happens once" in action) == loads


def test_only_a_pause_in_a_loop_should_move_out_of_it() -> None:
    at = [(2000 * turn, 2000 * turn + 100) for turn in range(4)]
    once, in_loop = (_advice(_cpu(*at[:count]))["python_work"].action for count in (2, 4))
    assert "loop" not in once
    assert in_loop.endswith(once)
    assert "before the loop" in in_loop


@pytest.mark.parametrize(("rule", "story"), [
    ("python_work", _cpu(*((2000 * turn, 2000 * turn + 100) for turn in range(4)))),
    ("host_work", _COPIED),
])  # fmt: skip
def test_a_program_that_trains_nothing_may_wait_for_requests(rule: str, story: Story) -> None:
    node = encode_seq("autograd::engine::evaluate_function: MmBackward0", seq=3)
    trained = replace(story, ranges=[*story.ranges, Range(node, story.work[0].call or (0, 0))])
    served, in_training = (_advice(each)[rule].action for each in (story, trained))
    assert served.startswith("unless it waits for requests, ")
    assert "requests" not in in_training


def test_a_serving_engine_may_wait_for_requests() -> None:
    """Also where it does not begin with a copy to the GPU."""
    steps = [Range("step[DECODE bs=1]", (at * US, (at + 9) * US)) for at in (-1, 3999)]
    action = _advice(replace(_gap(4000), ranges=steps))["host_work"].action
    assert action.startswith("unless it waits for requests, a CPU profiler")


def _copied_by(name: str) -> Story:
    story = _copied(90)
    return Story(story.work, _called(name, story.work[1], _tensor(1 << 18)))


SGEMM_CONV = _busy(8000, CUDA_CORES, begin=10)
IMAGES = (_tensor(64, 256, 56, 56), _tensor(256, 256, 3, 3))
EVIDENCE = {
    "a float32 product": ("tf32", _matmul(CUDA_CORES, BIG, 8000), "matmul", ""),
    "a float32 convolution": (
        "tf32", Story([SGEMM_CONV], _called("conv2d", SGEMM_CONV, *IMAGES)), "conv2d", ""),
    "a float32 convolution of unknown shapes": (
        "tf32", Story([SGEMM_CONV], _called("conv2d", SGEMM_CONV)), "conv2d",
        "by the kernel's name"),
    "a half-precision product, with the reason": (
        "half_precision", _matmul(HALF_CUDA_CORES, HALF, 4000), "matmul", "library: "),
    "chains": ("unfused_pointwise", _chain(1 << 20, 1 << 20, 1 << 20), "add", ""),
    "a number read back": ("synchronisation", _read_back(), "item", ""),
    "a copy from pageable memory": ("pageable_copies", _copied_by("to"), "to", ""),
    "what came after a pause on a CPU": (
        "python_work", _cpu((0, 100), (2000, 2100)), "mm", "after mm at net.py:5"),
    "what followed pauses on a CPU": ("short_ops", _cpu(*SHORT), "mm", ""),
    "a product far under its roof": ("under_roof", _matmul(TC_GEMM, HALF, 20_000), "matmul", ""),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "story", "what", "reason"), EVIDENCE.values(), ids=EVIDENCE)
def test_evidence_names_the_users_op_and_line(
    rule: str, story: Story, what: str, reason: str
) -> None:
    evidence = _advice(story)[rule].evidence
    assert (evidence[0].what, evidence[0].line) == (what, "/src/net.py:5")
    assert evidence[0].detail.startswith(reason)
    assert bool(evidence[0].detail) == bool(reason)


def _attention_on_cpu() -> Story:
    """Run the ops of attention without a GPU."""
    names = iter(("aten::bmm", "aten::mul", "aten::_softmax", "aten::bmm"))
    work, ranges = told(*attention(64, 1024, 1024, 64), dtype="float32")
    ops = [replace(each, kind=schema.CPU, name=next(names), grid=None) for each in work]
    return Story(ops, ranges)


_FEW_BLOCKS = _busy(172, ADD, begin=10, grid=27)
GAINS = {
    "tf32 of a short product: down to the shortest kernel": (
        "tf32", _matmul(CUDA_CORES, (_tensor(256, 256),) * 2, 7), 7 - 2.5),
    "tf32 of a short kernel without a known op: the same, as far as it was tried": (
        "tf32", Story([_busy(7, CUDA_CORES)]), 7 - 2.5 * tried("--dtype tf32").low),
    "attention of four kernels of 100 us, fused at 0.17 of 312 TFLOP/s": (
        "eager_attention", Story(*told(*attention(64, 1024, 1024, 64))),
        400 - 4 * 64 * 1024 * 1024 * 64 / 312e6 / 0.17),
    "attention in float32, fused in bfloat16": (
        "eager_attention", Story(*told(*attention(64, 1024, 1024, 64), dtype="float32")),
        400 - 4 * 64 * 1024 * 1024 * 64 / 312e6 / 0.17),
    "on a V100 in float16, which its Tensor Cores take": (
        "eager_attention",
        _on(VOLTA, Story(*told(*attention(16, 1024, 1024, 64), dtype="float32"))),
        400 - 4 * 16 * 1024 * 1024 * 64 / 125e6 / 0.17),
    "attention on a CPU, at most all of it": (
        "eager_attention", _attention_on_cpu(), 400),
    "a launch until it returned, not until its kernel began": (
        "launch_bound", _one("late", (603, 610), (105, 115)), 5),
    "idle blocks, but the others reach 3/4 of 1555 GB/s": (
        "low_occupancy", Story([_FEW_BLOCKS], _called("add", _FEW_BLOCKS, *BIG)),
        172 - 3 * 4 * 4096**2 / 1.5552e6),
    "float16 by the kernel's name alone, at 78 instead of 312 TFLOP/s": (
        "half_precision", Story([_busy(4000, HALF_CUDA_CORES)]), 4000 * (1 - 78 / 312)),
    "a layout kernel without a known op": ("channels_last", Story([_busy(50, LAYOUT)]), 50),
    "tf32 by the kernel's name alone, at most at the higher peak, as far as it was tried": (
        "tf32", Story([_busy(8000, CUDA_CORES)]),
        8000 * (1 - 19.5 / 156 * tried("--dtype tf32").low)),
    "more communication than the rest of the time could hide": (
        "communication", Story([_busy(), _busy(300, NCCL, begin=100)]), 100),
    "float64 by the kernel's name, on an A100 at half the rate of float32": (
        "double_precision", Story([_busy(8000, "ampere_dgemm_64x64_tn")]), 4000),
    "float64 by the kernel's name, on a T4 at a 32nd of the rate": (
        "double_precision", _on(T4, Story([_busy(8000, "volta_dgemm_64x64_tn")])), 8000 * 31 / 32),
    "float64 times a vector, by the kernel's name, on a T4: half of the bytes": (
        "double_precision", _on(T4, Story([_busy(8000, GEMV64)])), 4000),
    "float32 on a V100, by the kernel's name, at 125 instead of 15.7 TFLOP/s": (
        "mixed_precision", _on(VOLTA, Story([_busy(10_000, "volta_sgemm_128x64_tn")])),
        10_000 * (1 - 15.7 / 125)),
    "float32 on a V100, beside a sum: autocast halves its bytes": (
        "mixed_precision", _on(VOLTA, Story([
            _busy(10_000, "volta_sgemm_128x64_tn"), _busy(4000, ADD, begin=20_000)])),
        10_000 * (1 - 15.7 / 125) + 4000 / 2),
    "float32 on a V100 beside float16: a sum behind the float16 product stays as it is": (
        "mixed_precision", _on(VOLTA, Story([
            _busy(10_000, "volta_sgemm_128x64_tn"),
            _busy(30_000, "volta_h884gemm_128x64_ldg8_tn", begin=20_000),
            _busy(4000, ADD, begin=60_000)])),
        10_000 * (1 - 15.7 / 125)),
    "a float32 network on a V100 beside one in float16: its sum takes half": (
        "mixed_precision", _on(VOLTA, Story([
            _busy(30_000, "volta_h884gemm_128x64_ldg8_tn"),
            _busy(10_000, "volta_sgemm_128x64_tn", begin=40_000),
            _busy(4000, ADD, begin=60_000)])),
        10_000 * (1 - 15.7 / 125) + 4000 / 2),
    "a float32 network on a V100, on a stream of its own beside one in float16": (
        "mixed_precision", _on(VOLTA, Story([
            _busy(10_000, "volta_sgemm_128x64_tn"),
            replace(_busy(30_000, "volta_h884gemm_128x64_ldg8_tn", begin=20_000), stream=8),
            _busy(4000, ADD, begin=60_000)])),
        10_000 * (1 - 15.7 / 125) + 4000 / 2),
    "a float64 convolution on a CPU: a fifth stays": (
        "double_precision", _cpu((0, 100), (101, 200), name="conv2d", tensors=DOUBLE_IMAGES),
        199 * 4 / 5),
    "an optimizer on a CPU: the op in place, of 10 us, stays, not that into new memory": (
        "unfused_optimizer", _into_new_memory(_optimizer("AdamW")), 100),
    "the same, and what calling it took": (
        "unfused_optimizer", _into_new_memory(_optimizer("AdamW"), 40 * US), 100 + 41),
    "data loaded on a CPU, with ops in the loader: all of it": (
        "data_loading", replace(_cpu((0, 100), (900, 950), (2000, 2100)), ranges=[
            Range("enumerate(DataLoader)#__next__", (100 * US, 2000 * US))]), 1900),
    "80 products of 10 us, of which the core computes 2.5 us at best": (
        "python_loop", _steps(*[Called("mm", (_tensor(64, 32), _tensor(32, 61)))] * 80),
        79 * (10 - 2 * 64 * 32 * 61 / 100e3)),
    "a tensor that grows, but not what calls cost": (
        "growing_cat", _grown(12, 64, pause_ns=90 * US),
        50 * sum(1 - 1 / (each + 1) for each in range(1, 12))),
    "pages, as long as the kernel ran": ("unified_memory", _migrated(90, 130), 20),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "story", "expected_us"), GAINS.values(), ids=GAINS)
def test_gains_equal_those_worked_out_by_hand(rule: str, story: Story, expected_us: float) -> None:
    """Those that no case of one story has."""
    assert _expected_us(_advice(story)[rule]) == pytest.approx(expected_us, rel=0.01)


def test_attention_on_a_cpu_is_of_ops() -> None:
    """As its chains are: only a GPU has kernels."""
    assert "separate ops" in _advice(_attention_on_cpu())["eager_attention"].title


def test_a_loop_before_the_steps_is_not_counted_per_step() -> None:
    context = _context(_steps(*[Called("tanh", (SOME,))] * 80, count=3, text="step"))
    before = context.narrowed(context.chosen, context.cpus[0].span, once=True)
    assert " a step" in known(python_loop(context)).title
    assert " a step" not in known(python_loop(before)).title


def test_a_gain_that_was_tried_is_an_interval() -> None:
    """The upper bound is its high end; the rule says on what it was tested, and how to do it."""
    found = _advice(_matmul(CUDA_CORES, BIG, 8000))["tf32"]
    predicted = known(found.predicted)
    assert found.gain_ns == predicted.high_ns
    after = [8000 * US - ns for ns in (predicted.high_ns, predicted.low_ns)]
    change = tried("--dtype tf32")
    assert [ns / (1000 * US) for ns in after] == pytest.approx(change.interval, rel=0.01)
    assert predicted.validation == change.text
    assert predicted.code.startswith("torch.")


_ON_CPU = partial(replace, kind=schema.CPU, name="aten::gelu", grid=None)
UNTRIED = {
    "tf32 of another vendor": replace(
        _matmul(CUDA_CORES, BIG, 8000), override=Override("MI300X")),
    "chains of another vendor": replace(_CHAIN, override=Override("MI300X")),
    "products of unknown shapes": _matmul(CUDA_CORES, (), 8000),
    "a CPU": replace(_CHAIN, work=[_ON_CPU(each, at=each.call) for each in _CHAIN.work]),
    "an unknown GPU": _on(dict.fromkeys(("name", "cc_major", "cc_minor")), _CHAIN),
    "a slice of a GPU, of unknown bandwidth": _on(
        {"sm_count": 14}, _matmul(CUDA_CORES, BIG, 80_000)),
}  # fmt: skip


@pytest.mark.parametrize("story", UNTRIED.values(), ids=UNTRIED)
def test_where_no_change_was_tried_gains_are_upper_bounds(story: Story) -> None:
    found = [*_advice(story).values()]
    assert found
    assert not any(each.predicted for each in found)


def test_advice_is_sorted_by_gain() -> None:
    story = _gap(2000, Api("cudaStreamSynchronize", (20 * US, 130 * US)), text="next_batch")
    gains = [advice.gain_ns or 0 for advice in _advice(story).values()]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) > 1


def test_rows_share_the_text_of_their_reason() -> None:
    """Of a million rows, copies would take several times the memory of all else."""
    records = _context(_matmul(HALF_CUDA_CORES, HALF, 4000)).table.records
    context = RuleContext(Table(records.take(np.zeros(20_000, np.int64))))
    half_precision(context)  # computes what rules share
    tracemalloc.start()
    advice = known(half_precision(context))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert advice.evidence[0].count == 20_000
    assert peak_bytes < 20_000 * 300


def test_gains_of_parallel_gpus_are_not_added() -> None:
    """The larger of the two shortens the step."""
    work = [_busy(grid=27), Work((10 * US, 60 * US), (6 * US, 7 * US), grid=(27, 1, 1), device=1)]
    assert _advice(Story(work))["low_occupancy"].gain_ns == 75 * US


@pytest.mark.parametrize(("device", "title", "setting"), [
    ("Ascend910B3", "the NPU waits for memory", "PYTORCH_NPU_ALLOC_CONF"),
    ("MTIA", "the MTIA waits for memory", "empty_cache()"),
])  # fmt: skip
def test_another_device_is_called_as_its_users_call_it(
    device: str, title: str, setting: str
) -> None:
    story = _gap(2000, Api("cudaMalloc", (200 * US, 1900 * US)))
    story = replace(story, ranges=_called("add", story.work[1], ROW))
    found = _advice(replace(story, gpu={"name": device, "cuda_cc": None}))["allocation"]
    assert found.title.startswith(title)
    assert setting in found.action
    assert "CUDA" not in found.action


def test_what_blocking_launches_distort_is_no_evidence() -> None:
    """With CUDA_LAUNCH_BLOCKING=1, idle time and overlap are not the program's."""
    free = [_busy(begin=1000 * n) for n in range(8)]
    work = [replace(each, call=(each.at[0] - 10 * US, each.at[1] + US)) for each in free]
    assert "host_work" in _advice(Story(free))
    assert _advice(Story(work)) == {}


def test_idle_time_gains_no_more_than_the_busiest_gpu_idles() -> None:
    """The other one of the process idles longer, but no step is shorter than that work."""
    starts = [(10 + 1000 * n) * US for n in range(4)]
    work = [
        Work((at, at + ms * US), (at - 5 * US, at - 4 * US), TC_GEMM, device=device)
        for at in starts
        for device, ms in enumerate((800, 100))
    ]
    assert _advice(Story(work))["host_work"].gain_ns == 3 * 200 * US


def _side_by_side(*work: Work) -> list[Work]:
    """Run work at once for 20 ms, each on a stream of its own."""
    return [
        replace(each, at=(10 * US, 20_010 * US), call=(US, 2 * US), stream=stream)
        for stream, each in enumerate(work)
    ]


def test_kernels_side_by_side_gain_no_more_than_their_time() -> None:
    """Of four streams, 12 of 108 SMs each, and of four float32 products."""
    few = _advice(Story(_side_by_side(*[_busy(grid=12)] * 4)))
    assert few["low_occupancy"].gain_ns == 20_000 * US
    one, four = (_advice(Story(_side_by_side(*[_busy(name=CUDA_CORES)] * n))) for n in (1, 4))
    assert one["tf32"].predicted == four["tf32"].predicted
    assert one["tf32"].gain_ns == four["tf32"].gain_ns


def test_copies_side_by_side_gain_the_time_that_they_run_alone() -> None:
    """Two copies of 20 ms at once; a kernel meanwhile takes 5 ms of it."""
    both = _side_by_side(*[copy((0, 1), (0, 1))] * 2)
    kernel = replace(_busy(), at=(10 * US, 5010 * US), call=(3 * US, 4 * US), stream=7)
    gains = _advice(Story([*both, kernel]))
    assert gains["exposed_copies"].gain_ns == 15_000 * US
    blocking = [replace(each, call=(US, 19_000 * US)) for each in both]
    assert _advice(Story([*blocking, kernel]))["pageable_copies"].gain_ns == 15_000 * US


def test_a_quiet_capture_needs_no_advice() -> None:
    """One kernel at its roof that was queued in time."""
    story = _matmul(TC_GEMM, HALF, 600)
    (work,) = story.work
    later = replace(work, at=(work.at[0] + 600 * US, work.at[1] + 600 * US))
    assert _advice(replace(story, work=[work, later])) == {}


@pytest.mark.parametrize("reads", [True, False])
def test_a_loop_that_reads_numbers_is_told_what_a_graph_cannot_hold(reads: bool) -> None:  # noqa: FBT001
    steps = [one_step(number * 400 * US, f"step {number}") for number in range(4)]
    work = [row for part, _, _ in steps for row in part if reads or row.kind != schema.MEMCPY]
    ranges = [each for _, _, of_step in steps for each in of_step]
    action = _advice(Story(work, ranges))["launch_bound"].action
    assert ("must stay outside a graph" in action) == reads
