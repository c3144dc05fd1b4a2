"""The original's files refer to a backward kernel's forward call only by number."""

from typing import Any

import pytest

from tests.commands import run
from tests.commands.test_prof import column, table

MUL = (
    "{'mod': 'torch', 'op': 'mul', 'args': [{'name': '', 'type': 'tensor', 'shape': (8, 4), "
    "'dtype': 'float32'}, {'name': '', 'type': 'tensor', 'shape': (8, 4), 'dtype': 'float32'}]}"
)


def row(direction: str, seq: list[int], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    forward = direction == "fprop"
    texts: dict[str, Any] = {
        "marker": [MUL] if forward else [],
        "mod": ["torch"] if forward else ["na"],
        "op": ["mul"],
        "layer": ["net"] if forward else [],
        "trace": ["a.py:3"] if forward else [],
    }
    common = {"kShortName": "k", "kDuration": 5, "kLongName": "mul_kernel", "reprMarkers": []}
    rest = {"seqMarker": [], "seqId": seq, "subSeqId": 0, "altSeqId": [], "dir": direction}
    ids = {"tid": 1, "device": 0, "stream": 7, "grid": (1, 1, 1), "block": (1, 1, 1)}
    return {**common, **rest, **texts, **ids, **more}


def report(*rows: dict[str, Any]) -> list[dict[str, str]]:
    text = "\n".join(map(repr, rows))
    return table("-q", "-c", "dir,layer,trace,mod,op,flops", "-", stdin=text)


def test_a_backward_row_takes_the_forward_row_with_its_number() -> None:
    """Layer, trace, mod, op and cost: two products for the two gradients of mul."""
    forward, backward = report(row("fprop", [7]), row("bprop", [7]))
    assert column([forward, backward], "Layer") == ["net", "net"]
    assert column([forward, backward], "Trace") == ["a.py:3", "a.py:3"]
    assert column([forward, backward], "Module") == ["torch", "torch"]
    assert (forward["FLOPs"], backward["FLOPs"]) == ("32", "64")


@pytest.mark.parametrize(
    ("rows", "layers"),
    [
        (
            [([7], [], "first"), ([7], [], "second"), ([7], [], None), ([7], [], "third")],
            ["first", "second", "second", "third"],
        ),
        (
            [([7], [], "seven"), ([8], [], "eight"), ([9], [8], None), ([7], [8], None)],
            ["seven", "eight", "eight", "seven"],
        ),
    ],
    ids=["the latest before it", "other numbers after its own"],
)
def test_a_backward_row_takes_the_layer_of_a_forward_row(
    rows: list[tuple[list[int], list[int], str | None]], layers: list[str]
) -> None:
    written = [
        row("fprop" if layer else "bprop", seq, altSeqId=other, layer=[layer] if layer else [])
        for seq, other, layer in rows
    ]
    assert column(report(*written), "Layer") == layers


def test_a_number_that_no_row_has_finds_nothing() -> None:
    assert report(row("fprop", [7]), row("bprop", [8]))[1]["FLOPs"] == ""
    text = "\n".join(map(repr, (row("fprop", [7]), row("bprop", [8]))))
    assert "unknown for 1 row:" in run("prof", "-", stdin=text).stderr
