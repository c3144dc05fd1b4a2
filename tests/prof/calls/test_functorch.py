"""The call that runs below layers of functorch, with its own arguments alone."""

from pathlib import Path

import pyprof
from pyprof.marker import Call, Tensor, encode_seq
from pyprof.prof.calls.functorch import innermost
from tests.builders import Range, Work, nsys_db

HIDDEN, SHOWN = Tensor((32,), "float32"), Tensor((10, 32), "float32")


def _softmax(*args: object) -> Call:
    return Call("aten", "_log_softmax", args)  # type: ignore[arg-type]


def test_no_layer() -> None:
    """Calls in one another are none; nor is an op that calls its own form with a result."""
    assert innermost([]) is None
    assert innermost([Call("aten", "mm", (SHOWN,)), None, Call("aten", "mm", (SHOWN,))]) is None
    assert innermost([_softmax(SHOWN, 1, None), _softmax(HIDDEN, 0, None)]) is None
    kth = [Call("aten", "kthvalue", (SHOWN, 2, 1, SHOWN, SHOWN)[:n]) for n in (5, 3)]
    assert innermost(kth) is None


def test_a_call_with_the_same_arguments() -> None:
    """The deepest such call counts, whatever it calls in its turn."""
    calls = [Call("aten", "copy_", (SHOWN,)), *[_softmax(SHOWN, 1, None)] * 2]
    assert innermost(calls) == (1, _softmax(SHOWN, 1, None))


def test_arguments_repeated_and_arguments_of_what_is_around() -> None:
    """Only the last as many as the call takes are its own."""
    twice = [_softmax(SHOWN, 1, None, SHOWN, 1, None), _softmax(SHOWN, 1, None)]
    assert innermost(twice) == (0, _softmax(SHOWN, 1, None))
    stacked = _softmax(HIDDEN, 0, None, SHOWN, 1, None)
    around = [_softmax(HIDDEN, 0, None, HIDDEN, 0, None), _softmax(HIDDEN, 0, None)]
    assert innermost([stacked, stacked, *around]) == (0, _softmax(SHOWN, 1, None))


def test_another_form_of_the_op_is_not_cut_short() -> None:
    """A sum over a dimension takes more arguments than the sum of all that was asked for."""
    whole = Call("aten", "sum", (Tensor((48,), "float32"), None))
    over = Call("aten", "sum", (Tensor((64, 48), "float32"), (1,), None, None))
    assert innermost([over, over, whole, whole]) == (0, over)


def test_a_kernel_on_the_gpu(tmp_path: Path) -> None:
    """Its call is charged with the sizes of the batch, not with those of a sample before them."""

    def ranged(*sizes: list[int]) -> str:
        given = [part for size in sizes for part in (size, [], [])]
        inputs = [text for size in sizes for text in ("", str(len(size) - 1), "False")]
        kinds = ["float32" if size else "" for size in given]
        return encode_seq("aten::_log_softmax", op_id=1, sizes=given, dtypes=kinds, inputs=inputs)

    texts = [*[ranged([32])] * 2, ranged([32], [32]), *[ranged([32], [10, 32])] * 2]
    ranges = [Range(text, (at, 100 - at)) for at, text in enumerate(texts)]
    work = [Work("softmax_kernel", (200, 300), (50, 55))]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, ranges))
    assert rows.flops.tolist() == [24 * 320]
