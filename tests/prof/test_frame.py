"""`pyprof.load`: one frame, whichever way the records came."""

from pathlib import Path

import pandas as pd
import pytest

import pyprof
from pyprof.errors import CaptureError
from pyprof.parse import dictfile, parquet, parse_file
from tests.conftest import CAPTURES

REAL = sorted((*CAPTURES.glob("*/net.sql*"), *CAPTURES.glob("*/trace.json.gz")))
FROM_DEVICE = ["tc", "bound", "eff", "peak", "why"]
"""What rests on the device's clock and SMs, of which dict lines do not speak."""


@pytest.mark.parametrize("capture", REAL, ids=lambda path: path.parent.name)
def test_a_capture_and_its_records_load_alike(capture: Path, tmp_path: Path) -> None:
    """Parquet gives the capture's own frame; dict lines all but what needs the device."""
    try:
        records = parse_file(capture)
    except CaptureError as error:
        pytest.skip(str(error))
    paths = [tmp_path / "net.parquet", tmp_path / "net.dict"]
    for path, write in zip(paths, (parquet.write, dictfile.write), strict=True):
        with path.open("wb") as file:
            write(records, file)
    expected, stored, lines = map(pyprof.load, (capture, *paths))
    pd.testing.assert_frame_equal(stored, expected)
    pd.testing.assert_frame_equal(
        lines.drop(columns=FROM_DEVICE), expected.drop(columns=FROM_DEVICE)
    )
