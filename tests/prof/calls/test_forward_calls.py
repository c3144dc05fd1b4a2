"""The original's files refer to a backward kernel's forward call only by number."""

from typing import Any

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


def test_the_latest_forward_row_counts() -> None:
    """Numbers of earlier iterations are overridden; later ones are ignored."""
    rows = (
        row("fprop", [7], layer=["first"]),
        row("fprop", [7], layer=["second"]),
        row("bprop", [7]),
        row("fprop", [7], layer=["third"]),
    )
    assert report(*rows)[2]["Layer"] == "second"


def test_other_numbers_of_a_row_count_after_its_own() -> None:
    """AltSeqId is tried second."""
    rows = (
        row("fprop", [7], layer=["seven"]),
        row("fprop", [8], layer=["eight"]),
        row("bprop", [9], altSeqId=[8]),
        row("bprop", [7], altSeqId=[8]),
    )
    assert column(report(*rows), "Layer")[2:] == ["eight", "seven"]


def test_a_number_that_no_row_has_finds_nothing() -> None:
    """The op stays unknown: empty, with a reason."""
    assert report(row("fprop", [7]), row("bprop", [8]))[1]["FLOPs"] == ""
    text = "\n".join(map(repr, (row("fprop", [7]), row("bprop", [8]))))
    assert "unknown for 1 row:" in run("prof", "-", stdin=text).stderr
