"""Texts without their numbers: nothing is lost, and repetitions are stored once."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyprof import marker, readers
from pyprof.marker import templates
from tests import damage
from tests.conftest import CAPTURES, real
from tests.texts import texts as texts_of

_PARTS = (
    *("aten::mm", "é", "", " ", "= ", ", ", "x, y", ", sizes = [[1, 2]]", ", dtypes = ['']"),
    *(", seq = ", ", op_id = ", ", seq = 12", ", op_id = 7", ", seq = -1", ", op_id = 007"),
    *(", input_op_ids = [", "(1,0)", "(0,-1)", "]", ", input_op_ids = [(0,-1), (7,0)]"),
    *(", input_op_ids = [(01,0)]", ", input_op_ids = [(1, 0)]", ", input_op_ids = []"),
    *("0", "00", "-0", "7", "9" * 18, "9" * 19, f", input_op_ids = [({'9' * 18},2)]"),
)
_TEXTS = st.one_of(st.lists(st.sampled_from(_PARTS), max_size=8).map("".join), st.text())


@given(st.lists(_TEXTS), st.integers(0, 3))
@example([f"aten::mm, input_op_ids = [({2**31},2)]"], 0)  # as far away as stands for no op
def test_texts_round_trip_through_templates(texts: list[str], first: int) -> None:
    array = pa.array(texts, pa.string()).slice(first)
    found = templates.split(array)
    found.validate(full=True)
    assert found.type == templates.NUMBERED
    assert templates.spell(found).to_pylist() == array.to_pylist()


@given(
    st.sampled_from(("aten::mm", "autograd::engine::evaluate_function: MmBackward0", "a, b")),
    st.none() | st.integers(0, 10**18 - 1),
    st.none() | st.integers(1, 10**18 - 1),
    st.sampled_from(("", ", sizes = [[2], []]")),
    st.lists(st.tuples(st.integers(0, 30), st.integers(-1, 9))),
)
def test_texts_of_emit_nvtx_are_split_into_numbers_and_template(
    name: str, seq: int | None, op_id: int | None, rest: str, inputs: list[tuple[int, int]]
) -> None:
    """The numbers are those written; the template is what is left without them."""
    text = marker.encode_seq(name, seq=seq, op_id=op_id) + rest
    inputs = [((op_id or 99) - back if back else 0, output) for back, output in inputs]
    if inputs and all(maker >= 0 for maker, _ in inputs):
        text += f", input_op_ids = [{', '.join(f'({maker},{output})' for maker, output in inputs)}]"
    (found,) = templates.split(pa.array([text])).to_pylist()
    assert (found["seq"], found["op_id"]) == (seq, op_id)
    assert found["text"] == _template(text)
    assert (found["inputs"] is None) == ("input_op_ids" not in text)


def _template(text: str) -> str:
    """Leave out what differs from one run of an op to the next."""
    return re.sub(r"(, (?:seq|op_id) = )\d+|, input_op_ids = \[[-(), \d]*\]$", r"\1", text)


def test_steps_share_templates_and_inputs() -> None:
    """For thousands of calls of an op only numbers are stored."""
    steps = [
        f"aten::add, seq = {n}, op_id = {9 * n}, sizes = [[4], [4]], "
        f"input_op_ids = [({9 * n - 4},0), (0,-1)]"
        for n in range(1, 5000)
    ]
    found = templates.split(pa.array(steps))
    assert [len(found.field(name).dictionary) for name in ("text", "inputs")] == [1, 1]


def test_null_stays_null() -> None:
    found = templates.split(pa.array([None, "a, seq = 3"]))
    assert (found[0].as_py(), found[1].as_py()["seq"]) == (None, 3)


@pytest.mark.few(4)
@pytest.mark.parametrize("path", real([*CAPTURES.glob("*/net.sq*"), *CAPTURES.glob("*/*.json.gz")]))
def test_templates_of_real_captures_equal_their_texts(path: Path) -> None:
    ranges = readers.read(path).ranges
    texts = texts_of(ranges)
    assert ranges.column("text").to_pylist() == [_template(text) for text in texts]
    numbers = [re.search(r", seq = (\d+)", text) for text in texts]
    assert ranges.column("seq").to_pylist() == [
        int(found[1]) if found else None for found in numbers
    ]


@pytest.mark.parametrize("path", [*CAPTURES.glob("nsys*/net.sqlite")], ids=lambda p: p.parent.name)
def test_texts_are_those_of_the_file(path: Path) -> None:
    columns = {row[1] for row in damage.query(path, "PRAGMA table_info(NVTX_EVENTS)")}
    text = "coalesce(value, text, '')" if "textId" in columns else "coalesce(text, '')"
    strings = "LEFT JOIN StringIds ON id = textId" if "textId" in columns else ""
    query = f"SELECT {text} FROM NVTX_EVENTS {strings} WHERE eventType IN (59, 60, 70, 71)"  # noqa: S608
    written = [text for (text,) in damage.query(path, query)] if columns else []
    assert sorted(texts_of(readers.read(path).ranges)) == sorted(written)
