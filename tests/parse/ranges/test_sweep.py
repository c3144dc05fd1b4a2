"""Nested ranges of any number and depth, in near-linear time."""

from pathlib import Path

import pytest

from pyprof.parse import parse_file
from tests.builders import Range, Work, nsys_db
from tests.commands import run


def _nested(path: Path, depth: int) -> Path:
    ranges = [Range(f"layer:l{n}", (n, 10 * depth - n)) for n in range(depth)]
    call = (5 * depth, 5 * depth + 1)
    return nsys_db(path, [Work(call=call, at=(20 * depth, 20 * depth + 7))], ranges)


@pytest.mark.slow
def test_a_kernel_in_many_layers_has_them_all(tmp_path: Path) -> None:
    """As long as the rows together do not list too many."""
    (layers,) = parse_file(_nested(tmp_path / "net.sqlite", 3000)).arrow("layer").to_pylist()
    assert layers == [f"l{n}" for n in range(3000)]


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["summary", "summary --by layer", "report -o net.html", "prof --by layer", "lines"],
)
def test_reports_take_any_depth(command: str, here: Path) -> None:
    done = run(*command.split(), _nested(here / "net.sqlite", 3000))
    assert done.code == 0
    assert max(map(len, done.stdout.splitlines()), default=0) < 40_000


@pytest.mark.slow
@pytest.mark.parametrize("form", ["aten::op{}, seq = {}", "layer:op{}"])
def test_too_many_ranges_that_never_end_are_dropped(form: str, tmp_path: Path) -> None:
    """More than can nest: nothing is tied to them, and a warning says so."""
    count = 3000
    work = [Work(call=(10 * n + 2, 10 * n + 4), at=(10 * n + 5, 10 * n + 9)) for n in range(count)]
    ranges = [Range(form.format(n, n), (10 * n, None)) for n in range(count)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", work, ranges))
    name = "op" if "seq" in form else "layer"
    assert not any(found.arrow(name).to_pylist())
    assert any("have no end" in text for text in found.warnings)


def test_a_few_ranges_that_never_end_are_kept(tmp_path: Path) -> None:
    """A capture that stops in the middle of a step leaves some open."""
    ranges = [Range(f"layer:l{n}", (n, None)) for n in range(30)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", [Work(call=(50, 51))], ranges))
    assert found.arrow("layer").to_pylist() == [[f"l{n}" for n in range(30)]]


def test_of_equal_ranges_the_op_that_began_first_is_outside(tmp_path: Path) -> None:
    """Old traces of torch.profiler have whole microseconds; `_` is before letters."""
    ranges = [
        Range(f"aten::{name}, seq = 4, op_id = {number}", (0, 100))
        for name, number in (("_norm", 8), ("norm", 7), ("a_norm", 9))
    ]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", [Work(call=(50, 51))], ranges))
    assert found.arrow("op").to_pylist() == [["norm", "_norm", "a_norm"]]
