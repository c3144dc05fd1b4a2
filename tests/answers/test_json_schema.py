"""The shipped schema: that of the code, and as promised."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from pyprof import answers
from pyprof.answers import json_schema
from pyprof.prof.columns import json_columns
from tests.answers.checked import validator
from tests.programs import TOP

DEFINITIONS = json_schema.schema()["$defs"]

_UNITS = re.compile(
    r"(_|^)(ns|bytes|j|w|hz|flops|per_s|percent|tflops|gbs|flop_per_byte|share|ratio|difference|noise|count|calls|rows|id|ids|version)(_|$)"
)
_PLAIN = {
    *("low", "mid", "high", "last_baseline", "ranks", "missing_ranks", "waiting_for_missing_ranks"),
    *("rank", "device", "kernels", "windows", "steps", "tokens", "line", "number", "groups"),
    *("first", "last", "p", "mfu", "excess", "hfu", "mbu", "efficiency", "busiest", "step"),
    "slowest_ranks",
    *("of", "clock", "clock_against_rank", "clock_drift", "clock_collectives", "imbalance"),
    *("a", "b", "change"),  # of what the name of the metric says
    *("times_like_groups", "left_before_the_last_came"),
}
"""Numbers of things, names that are numbers, and ratios with a name of their own."""


def _fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, definition in DEFINITIONS.items():
        for field, form in definition["properties"].items():
            if name != "row":  # of columns, whose rules are older
                yield name, field, form


def _types(form: dict[str, Any]) -> set[str]:
    inner = [*form.get("anyOf", ()), form.get("items", {}), form.get("additionalProperties", {})]
    own = form.get("type", [])
    return {*([own] if isinstance(own, str) else own)}.union(*map(_types, filter(None, inner)))


def test_the_shipped_schema_is_that_of_the_code() -> None:
    """`make docs` writes it: no new field is forgotten."""
    assert json_schema.shipped() == json_schema.schema(), "run `make docs`"
    validator()


def test_every_field_is_described() -> None:
    """By a docstring that says when it is null, if it can be."""
    for name, field, form in _fields():
        assert form["description"], f"{name}.{field} has no docstring"
        nullable = "null" in _types({key: form[key] for key in form if key != "items"})
        assert not nullable or "null" in form["description"], f"{name}.{field}: null for what?"


def test_every_column_is_described() -> None:
    for name, column in json_columns.by_key().items():
        assert column.help, f"{name} has no description"
        assert re.fullmatch(r"\w+", name), f"{name}: written as a unit, not as a name"


def test_units_are_in_names() -> None:
    for name, field, form in _fields():
        if name in {"Fact", "PredictedTime"}:  # a field, or the name of what holds it, is the unit
            continue
        if _types(form) & {"integer", "number"} and field not in _PLAIN:
            unitless = not _UNITS.search(field) and not field.endswith("_left_out")
            assert not unitless, f"{name}.{field}: of which unit?"


def test_every_kind_is_documented() -> None:
    page = (TOP / "docs" / "json.md").read_text("utf-8")
    assert [kind for kind in answers.kinds() if f"`{kind}`" not in page] == []


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", answers.kinds())
def test_an_answer_that_lacks_a_field_is_not_valid(kind: str) -> None:
    assert not validator().is_valid({**answers.envelope(answers.kinds()[kind])})
