"""Texts of equal ops are written once, but each call keeps its own numbers."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pyprof import marker
from pyprof.readers.kineto.file import stream
from tests.readers.kineto_json import event, kernel, launch, op, read, read_text, text, texts

SHAPES: tuple[Any, ...] = ([[2, 3]], [[2, 3], []], [[[4], [5, 6]]], [], None)
NAMES = ("aten::mm", "aten::add", "AddmmBackward0", "mine, seq = 4", "aten::x, op_id = 7", "été")
NUMBERS = (None, 0, 1, 41, 10**17, 10**18, 2**62, -1, -5)


def calls(random: Random, count: int) -> list[dict[str, Any]]:
    """Write ops of few names and shapes, with all kinds of numbers."""
    written = []
    for place in range(count):
        args: dict[str, Any] = {"Input Dims": random.choice(SHAPES)}
        args |= {"External id": random.choice(NUMBERS), "Sequence number": random.choice(NUMBERS)}
        args = {key: value for key, value in args.items() if value is not None}
        if random.random() < 0.5:
            args["Concrete Inputs"] = random.choice((["", "2"], ["a, seq = 3"], ["x' \"y"]))
        one = op(random.choice(NAMES), place * 10, 5)
        written.append({**one, "args": args})
    return written


def expected(call: dict[str, Any]) -> str:
    args = call["args"]
    seq = args.get("Sequence number", -1)
    return marker.encode_seq(
        call["name"],
        seq=seq if seq >= 0 else None,
        op_id=args.get("External id"),
        sizes=args.get("Input Dims"),
        inputs=args.get("Concrete Inputs"),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("block", [600, 4 << 20])
def test_each_call_has_the_text_of_its_own_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, block: int
) -> None:
    monkeypatch.setattr(stream, "BLOCK_BYTES", block)
    made = calls(Random(seed), 80)  # noqa: S311 - to be the same each time
    made = [call for call in made if "::" in call["name"] or "Sequence number" in call["args"]]
    capture = read(tmp_path, [*made, launch(1, 2000), kernel(1, 2005)])
    assert sorted(texts(capture)) == sorted(map(expected, made))


def test_equal_texts_keep_their_own_stack_and_forward_thread(tmp_path: Path) -> None:
    made = [
        op(
            "aten::mm", place * 10, 5, Input_Dims=[[2]],
            **{"Call stack": f"a.py({place % 2}): f", "Fwd thread id": place, "Sequence number": 9},
        )
        for place in range(4)
    ]  # fmt: skip
    capture = read(tmp_path, [*made, launch(1, 90), kernel(1, 95)])
    written = texts(capture)
    assert [line for line in written if "a.py" in line] == [
        f"{{'traceMarker': ['a.py:{place % 2}'], 'functions': ['f']}}" for place in range(4)
    ]


ODD = {
    "a number that is none": ('"Input Dims": [[2]]', '"Input Dims": [[nan]]', "[[None]]"),
    "no UTF-8": ('"Input type": ["float"]', '"Input type": ["fl\udcffat"]', "[[2]]"),
    "no object": ('"args": {"External id": 1', '"args": [{"External id": 1', None),
}


@pytest.mark.parametrize(("good", "bad", "said"), ODD.values(), ids=ODD)
def test_invalid_arguments_cost_no_event(
    tmp_path: Path, good: str, bad: str, said: str | None
) -> None:
    made = event("cpu_op", "aten::mm", 0, 5, External_id=1)
    made["args"] = {"External id": 1, "Input Dims": [[2]], "Input type": ["float"]}
    written = text([made, launch(1, 10), kernel(1, 15)])
    assert good in written
    written = written.replace(good, bad, 1)
    if said is None:
        written = written.replace('["float"]}}', '["float"]}]}', 1)
        json.loads(written)
    capture = read_text(tmp_path, written.encode(errors="surrogateescape"))
    (found,) = texts(capture)
    assert found == "aten::mm" if said is None else f"sizes = {said}" in found
    assert capture.activities.num_rows == 1
