"""Initial values of parameters have no direction, with and without stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyprof.marker import encode_layer
from pyprof.parse import parse_file
from tests.readers.kineto_calls import Called, call, events
from tests.readers.kineto_json import event, trace_file

if TYPE_CHECKING:
    from pathlib import Path

X = [64, 64]
UNIFORM, NORMAL = call("uniform_", [X, [], [], []]), call("normal_", [X, [], [], []])
BIAS = call("fill_", [[64], []])
INPUT = call("randn", [[]], call("empty", [[]]), call("normal_", [X, [], [], []]))


def forward(seq: int) -> Called:
    return call("linear", [X, X], call("mm", [X, X], seq=seq), seq=seq)


def directions(folder: Path, *calls: Called) -> list[str]:
    found: list[str] = parse_file(trace_file(folder, events(calls))).arrow("dir").to_pylist()
    return found


COMPARE, PRODUCT = call("lt", [X, []]), call("mm", [X, X])
FIRST = {
    "fills before the first forward op": (
        [UNIFORM, BIAS, INPUT, NORMAL, forward(3), forward(4)],
        ["", "", "fprop", "", "fprop", "fprop"],
    ),
    # trunc_normal_ compares and draws again; after the last fill it is unknown
    "ops between two fills": (
        [NORMAL, COMPARE, NORMAL, COMPARE, forward(3)],
        ["", "", "", "fprop", "fprop"],
    ),
    # far from any fill they may be a validation before the training
    "ops without gradients": (
        [UNIFORM, *[PRODUCT] * 20, BIAS, forward(3)],
        ["", *["fprop"] * 20, "", "fprop"],
    ),
}


@pytest.mark.parametrize(("calls", "expected"), FIRST.values(), ids=FIRST)
def test_tensors_filled_before_the_first_forward_op_are_of_no_pass(
    calls: list[Called], expected: list[str], tmp_path: Path
) -> None:
    assert directions(tmp_path, *calls) == expected


@pytest.mark.parametrize(
    "calls",
    [
        (NORMAL, forward(3), NORMAL, forward(4)),  # noise that a model draws in each pass
        (forward(3), UNIFORM, forward(4)),  # after a pass has begun
        (call("mm", [X, X]), UNIFORM, call("mm", [X, X])),  # inference
        (call("dropout", [X], call("bernoulli_", [X])), forward(3)),
    ],
    ids=["noise", "later", "inference", "dropout"],
)
def test_tensors_filled_in_a_pass_are_forward(calls: tuple[Called, ...], tmp_path: Path) -> None:
    assert set(directions(tmp_path, *calls)) == {"fprop"}


def test_a_constructor_that_calculates_with_gradients_is_no_pass(tmp_path: Path) -> None:
    """Models of Hugging Face compute rotary frequencies before they fill their weights."""
    calls = events([call("pow", [X, []], seq=0), NORMAL, forward(3)])
    layer = event("user_annotation", encode_layer("net"), calls[2]["ts"] - 1, 100)
    ops = parse_file(trace_file(tmp_path, [*calls, layer])).arrow("dir").to_pylist()
    assert ops == ["fprop", "", "fprop"]


def test_a_real_script_has_the_first_values_that_its_stacks_show(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    def train() -> None:
        torch.manual_seed(0)  # how often trunc_normal_ draws again depends on what it drew
        model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
        nn.init.trunc_normal_(model[0].weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        data = torch.randn(32, 8)
        for _ in range(2):
            optimizer.zero_grad()
            model(data).sum().backward()
            optimizer.step()

    filled = []
    for with_stack in (True, False):
        with torch.profiler.profile(with_stack=with_stack) as profiler:
            train()
        path = tmp_path / f"{with_stack}.json"
        profiler.export_chrome_trace(str(path))
        records = parse_file(path)
        ops = records.arrow("op").to_pylist()
        directions = records.arrow("dir").to_pylist()
        filled.append([op[0] for op, direction in zip(ops, directions, strict=True)
                       if not direction])  # fmt: skip
    stacks, without = filled
    assert {"uniform_", "fill_", "normal_", "zero_", "lt"} <= set(without)
    after_the_last = stacks[len(without) :]  # only a stack shows that these are first values, too
    assert without == stacks[: len(without)]
    assert set(after_the_last) <= {"lt", "gt", "__or__", "any", "where", "copy_"}
