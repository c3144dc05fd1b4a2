"""JSON is made in one place, and is valid whatever an answer holds."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import answers
from pyprof.answers import json_schema
from tests.answers.checked import strict


@pytest.mark.parametrize(("value", "plain"), [
    (math.nan, None),
    (-math.inf, None),
    (np.float64("nan"), None),
    (np.int64(7), 7),
    (2**70, 2**70),
    ("caf\u00e9", "caf\u00e9"),
    ("a\ud800b", "a\ufffdb"),
    ("\ud83d\ude00", "\U0001f600"),
    ({"\udcff": (1.5, np.bool_(True))}, {"\ufffd": [1.5, True]}),  # noqa: FBT003 - a value
    (np.array([1, 2]), [1, 2]),
])  # fmt: skip
def test_every_value_has_one_form(value: object, plain: object) -> None:
    """NaN and infinity are null, lone surrogates U+FFFD, NumPy's values plain; ints stay exact."""
    assert answers.plain(value) == plain
    assert strict(answers.dumps(answers.plain(value))) == plain


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner),
    max_leaves=8,
)


@given(JSON)
def test_whatever_an_answer_holds_is_strict_json(value: object) -> None:
    """Any value of these types is written, and read without extensions."""
    strict(answers.dumps(answers.plain(value)))


def test_rows_are_written_one_a_line() -> None:
    rows = [pa.table({"idx": [1, 2], "x": [math.nan, None]}), pa.table({"idx": [3], "x": [1.0]})]
    lines = [*answers.row_lines(rows)]
    assert [json.loads(line) for line in lines] == [
        {"idx": 1, "x": None}, {"idx": 2, "x": None}, {"idx": 3, "x": 1.0},
    ]  # fmt: skip
    assert not any(b"\n" in line for line in lines)


def test_kinds_are_registered_once() -> None:
    assert "summary" in answers.kinds()
    with pytest.raises(ValueError, match="summary"):
        answers.answer("summary")(str)


@dataclass(frozen=True)
class _Part:
    size_bytes: int | None
    """How much; null if unknown."""


@dataclass(frozen=True)
class _Whole(_Part):
    parts: tuple[_Part, ...] | None
    """Some; null: none."""
    times_ns: dict[str, list[float]]
    """By name."""


def test_the_schema_follows_from_types_and_docstrings() -> None:
    """Nullable, nested, lists and maps as in JSON Schema, with the field's docstring."""
    definitions: dict[str, object] = {}
    form = json_schema._object(_Whole, definitions)
    assert form["required"] == ["size_bytes", "parts", "times_ns"]
    assert form["properties"] == {
        "size_bytes": {"type": ["integer", "null"], "description": "How much; null if unknown."},
        "parts": {
            "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/_Part"}}, {"type": "null"}],
            "description": "Some; null: none.",
        },
        "times_ns": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "number"}},
            "description": "By name.",
        },
    }
    assert [*definitions] == ["_Part"]


def test_a_type_that_json_lacks_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON"):
        json_schema._form(set[int], {})
