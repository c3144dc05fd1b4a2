"""The keys by which rows are matched."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pyprof.analysis.diff.keys import KEYS, renamed_layers
from pyprof.analysis.diff.side import Key
from pyprof.inputs import source
from pyprof.marker import encode_layer
from tests.analysis.captured import capture, op
from tests.answers.checked import ask
from tests.builders import Range, Work, nsys_db
from tests.commands import run


def test_each_row_has_every_key(tmp_path: Path) -> None:
    """A step is matched by its loop: step numbers would never match."""
    table = source.load(str(capture(tmp_path / "net.sqlite", steps=2))).table
    texts = {name: key(table).to_pylist() for name, key in KEYS.items()}
    assert {len(column) for column in texts.values()} == {table.records.rows}
    assert all(texts["op"])
    row = texts["op"].index("relu")
    assert (texts["shape"][row], texts["dtype"][row]) == ("16x8", "float32")
    layers = {name for path in texts["layer"] if path for name in path.split(":")}
    assert "step" in layers
    assert not any(name.startswith("step ") for name in layers)


OP_AND_LAYER = ("op", "layer")


def _capture(path: Path, layers: Sequence[str], times_ns: Sequence[int], *, marked: bool) -> Path:
    """Write a product in each layer, twice: the layer is a module's, or a range of the user's."""
    ranges, work, at = [], [], 0
    for number, (layer, ns) in enumerate([*zip(layers, times_ns, strict=True)] * 2):
        called = 1000 * number
        ranges += [
            Range(encode_layer(layer) if marked else layer, (called, called + 900)),
            Range(op("mm", 64, 64), (called + 10, called + 800)),
        ]
        at = max(at, called + 1000)
        work.append(Work("gemm", (at, at + ns), (called + 20, called + 30)))
        at += ns
    return nsys_db(path, work, ranges)


@pytest.mark.slow
@pytest.mark.parametrize("marked", [True, False])
def test_a_renamed_layer_is_the_same(tmp_path: Path, *, marked: bool) -> None:
    """With equal time it is not a change; with more, it is one change, not two; limits see it."""
    a = _capture(tmp_path / "a.sqlite", ["enc.2", "enc.10"], [50_000, 90_000], marked=marked)
    b = _capture(tmp_path / "b.sqlite", ["body.2", "body.10"], [50_000, 99_000], marked=marked)
    answer = ask("diff", a, b)
    found = {change["key"]["layer"]: change for change in answer["changes"]}
    assert {name: change["status"] for name, change in found.items()} == {
        "body.2": "same",
        "body.10": "slower",
    }
    assert found["body.10"]["a_key"]["layer"] == "enc.10"
    assert found["body.10"]["change_ns"] == 18_000
    (said,) = answer["causes"]
    assert "enc.2 in A is body.2 in B" in said
    assert said.endswith("(inferred)")
    assert run("diff", a, b, "--fail-if", "op>5%").code == 3
    assert run("diff", a, b, "--fail-if", "op>15%").code == 0


@pytest.mark.slow
def test_a_layer_in_both_is_not_renamed(tmp_path: Path) -> None:
    a = _capture(tmp_path / "a.sqlite", ["x", "y"], [50_000, 90_000], marked=True)
    answer = ask("diff", a, a)
    assert answer["causes"] == []
    assert {change["a_key"] for change in answer["changes"]} == {None}


CASES: dict[str, tuple[Mapping[str, float], Mapping[str, float], dict[str, str]]] = {
    "by its ends": ({"enc.1.q": 1, "enc.1.k": 1}, {"body.1.k": 1, "body.1.q": 1},
                    {"enc.1.q": "body.1.q", "enc.1.k": "body.1.k"}),
    "by its order": ({f"a.{n}": 1 for n in (2, 10, 1)}, {f"x{n}": 1 for n in (3, 4, 12)},
                     {"a.1": "x3", "a.2": "x4", "a.10": "x12"}),
    "called more often": ({"a": 1}, {"b": 2}, {}),
    "one is new": ({"a": 1}, {"a": 1, "b": 1}, {}),
    "one is gone": ({"enc.1": 1, "enc.2": 1}, {"body.2": 1}, {"enc.2": "body.2"}),
}  # fmt: skip


def _renamed(a: Mapping[str, float], b: Mapping[str, float]) -> dict[str | None, str | None]:
    """Pair the layers of two sides, each with a number of calls of one op."""
    sides: list[dict[Key, float]] = [
        {("mm", name): calls for name, calls in side.items()} for side in (a, b)
    ]
    return {x[1]: y[1] for x, y in renamed_layers(OP_AND_LAYER, *sides).items()}


@pytest.mark.parametrize(("a", "b", "expected"), CASES.values(), ids=CASES)
def test_layers_are_paired(
    a: Mapping[str, float], b: Mapping[str, float], expected: dict[str, str]
) -> None:
    """By what their names have in common, else in order; never if their calls differ."""
    assert _renamed(a, b) == expected


def test_very_many_layers_are_paired_in_order() -> None:
    """In time that does not grow with their square."""
    a, b = ({f"{name}.{n}": 1.0 for n in range(2000)} for name in "ab")
    assert _renamed(a, b) == {f"a.{n}": f"b.{n}" for n in range(2000)}


def test_layers_without_ops_are_not_paired() -> None:
    """Two layers are not the same because each is called once."""
    assert renamed_layers(("layer",), {("a",): 1}, {("b",): 1}) == {}
    assert renamed_layers(("op",), {("mm",): 1}, {("bmm",): 1}) == {}
