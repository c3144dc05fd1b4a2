"""nvprof's tables as text and as CSV."""

import csv
import io

import pytest

from pyprof.answers.prof_answer import NvprofLine, NvprofTables
from pyprof.render.text.nvprof_text import time, write


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [(27_839, "27.839us"), (999, "999ns"), (1e9, "1s"), (0, "0ns"), (99_999.4e9, "99999s"),
     (123_456.7e9, "123457s")],
)  # fmt: skip
def test_a_duration_has_the_largest_unit_above_one(duration_ns: float, text: str) -> None:
    """However long a run took, at most five digits without an exponent."""
    assert time(duration_ns) == text


def _line(name: str, total_ns: int | None, section: str = "GPU activities") -> NvprofLine:
    share = None if total_ns is None else 0.5
    return NvprofLine(
        section=section, name=name, share=share, total_ns=total_ns, calls=2,
        mean_ns=total_ns and total_ns / 2, min_ns=total_ns, max_ns=total_ns,
    )  # fmt: skip


def _written(*lines: NvprofLine, as_csv: bool, raw: bool = False) -> str:
    file = io.BytesIO()
    write(NvprofTables(lines), file, as_csv=as_csv, raw=raw)
    return file.getvalue().decode()


def test_csv_has_nanoseconds_and_empty_cells_for_unknown_times() -> None:
    """A name that looks like a formula is escaped, unless raw cells are requested."""
    lines = _line("=1+1", 300), _line("copy", None)
    first, second = csv.DictReader(io.StringIO(_written(*lines, as_csv=True)))
    assert (first["Time(ns)"], first["Avg(ns)"], first["Name"]) == ("300", "150.0", "'=1+1")
    assert (second["Time(ns)"], second["Time(%)"]) == ("", "")
    (raw,) = csv.DictReader(io.StringIO(_written(lines[0], as_csv=True, raw=True)))
    assert raw["Name"] == "=1+1"


def test_each_section_is_labelled_once_and_long_names_are_truncated() -> None:
    text = _written(
        _line("a" * 200, 300), _line("b", None), _line("c", 1, "API calls"), as_csv=False
    )
    assert text.count("GPU activities:") == text.count("API calls:") == 1
    assert "a" * 97 + "..." in text
    assert " - " in next(line for line in text.splitlines() if line.endswith(" b"))
