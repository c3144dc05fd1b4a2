"""`pyprof.load`: the columns, dtypes and rows that docs/frame.md promises, of any file."""

from pathlib import Path

import pandas as pd
import pytest

import pyprof
from pyprof.frame import meanings
from pyprof.parse import parse_file
from pyprof.prof.columns.standard import COLUMNS
from pyprof.records import dict_lines, parquet
from tests.analysis.captured import capture
from tests.commands import run
from tests.conftest import CAPTURES, real
from tests.programs import TOP

REAL = [
    CAPTURES / name
    for name in (
        "nsys2024.2-a100-pyprof-markers/net.sqlite",
        "nsys2024.6-a100-user-ranges/net.sqlite",
        "nsys2026.2-h100x2-fsdp/net.sqlite",
        "nvprof-v100-apex/net.sql",
        "kineto-h100-vit-inference/trace.json.gz",
        "kineto-torch-compile-triton/trace.json.gz",
    )
]
PROMISED = {meaning.name: meaning.dtype for meaning in meanings()}
FROM_DEVICE = ["tc", "bound", "eff", "peak", "why"]
"""Columns that need the device's clock and SMs, which dict lines lack."""


def dtypes(frame: pd.DataFrame) -> dict[str, str]:
    return {str(name): str(dtype) for name, dtype in frame.dtypes.items()}


def comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out what the driver says of the peaks; which number an op call has says nothing."""
    calls = pd.Series(pd.factorize(frame["opid"])[0])
    return frame.drop(columns=["peak", "eff"]).assign(opid=calls)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".sqlite", ".dict", ".parquet"])
def test_every_kind_of_file_has_the_documented_frame(tmp_path: Path, suffix: str) -> None:
    small = capture(tmp_path / "net.sqlite")
    target = small.with_suffix(suffix)
    if target != small:
        assert run("parse", small, "-o", target).code == 0
    frame, same = pyprof.load(target), pyprof.load(small)
    assert dtypes(frame) == PROMISED
    pd.testing.assert_frame_equal(comparable(frame), comparable(same))


def test_a_file_that_knows_little_has_all_columns(tmp_path: Path) -> None:
    (tmp_path / "net.dict").write_text(
        '{"kShortName": "k", "kDuration": 5, "kLongName": "k<int>"}\n'
    )
    frame = pyprof.load(tmp_path / "net.dict")
    assert dtypes(frame) == PROMISED
    for name in ("start", "gap", "flops", "bytes", "eff", "op", "layer", "rank", "seq"):
        assert frame[name].isna().all()
    assert frame["sizes"].tolist() == frame["dtypes"].tolist() == [None]


def test_each_column_is_documented() -> None:
    page = (TOP / "docs" / "frame.md").read_text("utf-8")
    for name, dtype, unit, text in meanings():
        kind = f"{dtype}, {unit}" if unit else dtype
        row = f"| `{name}` | {kind} | {text} |"
        assert row in page, f"docs/frame.md lacks column {name}: run `make docs`"
        assert text.endswith(".")


def test_a_unit_agrees_with_the_header() -> None:
    short = {"byte": "B"}
    for column in COLUMNS.values():
        header = column.header.partition("(")[2].rstrip(")")
        assert header in ("", short.get(column.unit, column.unit)), column.name


@pytest.mark.long
@pytest.mark.parametrize("net", real(REAL))
def test_a_capture_and_its_records_load_as_one_frame(net: Path, tmp_path: Path) -> None:
    """Parquet lacks only the steps; dict lines also the device's figures.

    Ranges around steps are in no record.
    """
    found = parse_file(net)
    paths = [tmp_path / "net.parquet", tmp_path / "net.dict"]
    for path, write in zip(paths, (parquet.write, dict_lines.write), strict=True):
        with path.open("wb") as file:
            write(found, file)
    expected, stored, lines = map(pyprof.load, (net, *paths))
    assert list(dtypes(expected).items()) == list(PROMISED.items())
    assert expected["sil"].tolist() == found.numpy("kDuration").tolist()
    stored, lines, expected = (each.drop(columns="step") for each in (stored, lines, expected))
    pd.testing.assert_frame_equal(stored, expected)
    pd.testing.assert_frame_equal(
        lines.drop(columns=FROM_DEVICE), expected.drop(columns=FROM_DEVICE)
    )
