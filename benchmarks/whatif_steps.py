"""Outcomes of `pyprof whatif` on NeuSight's steps and ops: other GPUs, compiled, other batches."""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import neusight
import numpy as np
from neusight import Micro, Step
from whatif_outcome import Outcome

from pyprof.analysis.pointwise_chains import chain_ns
from pyprof.analysis.whatif import batching, fusion, other_gpu
from pyprof.analysis.whatif.other_gpu import Board
from pyprof.gpu.peaks import Device, find_card, peaks

_ENDS_A_CHAIN = ("gemm", "bmm")
_MIN_NS = 50_000
_AGREE = 0.2
"""Maximum difference of a step and its ops, measured apart: else its products are unknown."""
_FILLS = 2048
"""Batch size times length from which on a layer's products fill these GPUs."""


def directions(folder: Path) -> Iterator[Outcome]:
    """Predict each model's step on one card from that on each other."""
    by_model = defaultdict(list)
    for step in neusight.steps(folder):
        board = other_gpu.board(step.device)
        if isinstance(board, Board):
            by_model[step.model].append((step, board))
    for model, steps in by_model.items():
        for (one, here), (other, there) in itertools.permutations(steps, 2):
            change = other_gpu.outcomes_of(here, there)
            what = f"{model}, {here.name} -> {there.name}"
            expected = one.ns * _ratio(one, here, there)
            yield Outcome(change, what, _program(model), expected, other.ns)


def _ratio(step: Step, here: Board, there: Board) -> float:
    ops = [op for op in step.ops if op.family is not None]
    ns = np.array([op.ns for op in ops])
    ratios = [
        float(other_gpu.time_ratio(str(op.family), op.flops, op.bytes, here, there)) for op in ops
    ]
    return float((ns * ratios).sum() / ns.sum())


def compiled(folder: Path) -> Iterator[Outcome]:
    """Predict each compiled step from the eager one, by its chains of point-wise ops."""
    for step in neusight.steps(folder):
        known = peaks(Device(step.device))
        if step.compiled_ns is None or known is None or known.bandwidth is None:
            continue
        ops = [op for op in step.ops if op.family is not None or op.name == "EMBEDDING"]
        chained, chain = _chains(ops)
        times = np.array([ops[at].times for at in chained])
        ns = np.array([ops[at].ns for at in chained]) / times
        moved = np.array([ops[at].bytes for at in chained])
        fused = chain_ns(ns, moved, chain, np.full(len(ns), known.bandwidth.value))
        now, layers = np.bincount(chain, ns), np.bincount(chain, times) / np.bincount(chain)
        gain = float(((now - np.minimum(fused, now)) * layers).sum())
        agree = abs(sum(op.ns for op in step.ops if op.family) / step.ns - 1) < _AGREE
        products = step.ns - float((now * layers).sum()) if agree else None
        what = f"{step.model}, {known.name}"
        yield Outcome(
            fusion.POINTWISE, what, _program(step.model), step.ns - gain, step.compiled_ns,
            products,
        )  # fmt: skip


def _chains(ops: list[neusight.StepOp]) -> tuple[list[int], np.ndarray]:
    """Return the ops in chains of two and more, and the chain of each."""
    groups: list[list[int]] = [[]]
    for at, op in enumerate(ops):
        ends = op.family in _ENDS_A_CHAIN or op.family is None
        if ends or (groups[-1] and ops[groups[-1][-1]].times != op.times):
            groups.append([])
        if not ends:
            groups[-1].append(at)
    long = [group for group in groups if len(group) > 1]
    return [at for group in long for at in group], np.repeat(
        np.arange(len(long)), [len(group) for group in long]
    )


def batches(folder: Path) -> Iterator[Outcome]:
    """Predict each model's step of a batch from that of another; both fill the GPU."""
    by_program = defaultdict(list)
    for step in neusight.steps(folder):
        program, length, count = step.model.rsplit("-", 2)  # bert_large-inf-512-16
        if int(length) * int(count) >= _FILLS:
            by_program[program, length, step.device].append((int(count), step))
    for (program, _, device), steps in by_program.items():
        card = find_card(device)
        change = batching.outcomes_of(card.name if card else device)
        for (few, one), (many, other) in itertools.permutations(steps, 2):
            what = f"{program}, {device}, {few} -> {many}"
            yield Outcome(change, what, _program(program), one.ns * many / few, other.ns)


def batches_of_ops(folder: Path) -> Iterator[Outcome]:
    """Predict each op of twice the batch, and back, where the grids of both fill the GPU."""
    by_shape: dict[tuple[object, ...], dict[int, Micro]] = defaultdict(dict)
    for each in neusight.micro(folder):
        by_shape[each.device, each.op, each.shape[1:]][each.shape[0]] = each
    for shapes in by_shape.values():
        for size, one in shapes.items():
            other = shapes.get(2 * size)
            card = find_card(one.device)
            if other is None or card is None or one.ns < _MIN_NS:
                continue
            if one.blocks >= batching.FILLED * card.sm_count:
                what, change = f"{one.op} {one.shape}, {card.name}", batching.outcomes_of(card.name)
                yield Outcome(change, f"{what}, 2x", one.op, 2 * one.ns, other.ns)
                yield Outcome(change, f"{what}, 0.5x", one.op, other.ns / 2, one.ns)


def _program(model: str) -> str:
    return model.partition("-")[0]
