"""Sequence numbers and call ids."""

from pathlib import Path

from tests.builders import Range, Work
from tests.parse.record_lines import around, parsed


def test_old_and_new_texts_of_emit_nvtx_are_read(tmp_path: Path) -> None:
    new = "aten::addmm, seq = 4, op_id = 17, sizes = [[10], [4, 72], [72, 10], [], []], input_op_ids = [(3,0)]"  # noqa: E501
    (line,) = parsed(tmp_path, around(new))
    assert (line["seqId"], line["altSeqId"], line["subSeqId"]) == ([4], [], 0)
    assert (line["mod"], line["op"]) == (["aten"], ["addmm"])
    assert line["sizes"] == [[10], [4, 72], [72, 10]]
    (line,) = parsed(tmp_path, around("addmm, seq = 4"))
    assert (line["op"], line["seqId"]) == (["addmm"], [4])
    texts = (
        "autograd::engine::evaluate_function: AddmmBackward0, op_id = 35",
        "AddmmBackward0, seq = 4, op_id = 36, sizes = [[4, 10]]",
        "aten::mm, op_id = 37, sizes = [[4, 10], [10, 72]]",
    )
    (line,) = parsed(tmp_path, around(*texts))
    assert (line["dir"], line["seqId"], line["op"][-1]) == ("bprop", [4], "mm")
    assert line["seqMarker"] == list(texts)


def test_kernels_of_one_call_share_its_number(tmp_path: Path) -> None:
    """OpId is one per call, for all its kernels; subSeqId counts them."""
    ranges = [Range("aten::mm, seq = 1", (90, 150)), Range("aten::mm, seq = 2", (190, 250))]
    work = [
        Work("a", at=(1000, 1001), call=(100, 105)),
        Work("b", at=(1010, 1011), call=(110, 115)),
        Work("c", at=(1020, 1021), call=(200, 205)),
    ]
    lines = parsed(tmp_path, ranges, *work)
    ids = [line["opId"] for line in lines]
    assert ids[0] == ids[1] != ids[2]
    assert [line["subSeqId"] for line in lines] == [0, 1, 0]
