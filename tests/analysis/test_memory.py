"""Memory does not grow with the texts of ranges."""

from pathlib import Path

import pytest

from tests.programs import generate, python

PEAK_BYTES = """
import io, sys, tracemalloc
from pathlib import Path
import pyarrow as pa
from pyprof.marker import templates
from pyprof.records import dict_lines, parquet
from pyprof.parse import parse_file
from pyprof.readers.sqlite import tables
from pyprof.inputs import source
from pyprof.export import write
from pyprof.export import as_parquet

class Nowhere(io.RawIOBase):  # whose writelines() calls write()
    def writable(self):
        return True
    def write(self, data):
        return memoryview(data).nbytes

# What is in work at once is as small against the capture as it is against a large one.
tables._BATCH_ROWS, tables._HELD_BYTES, templates._AT_ONCE = 16, 1 << 16, 128
parquet._TEXT_BYTES = dict_lines._BYTES = write._TEXT_BYTES = 1 << 18
dict_lines._FIRST_ROWS, dict_lines._WORKERS = 16, 1  # else what is in work depends on the time
tracemalloc.start()
path, form = sys.argv[1:]
if form == "export":
    as_parquet.write(write.tables(source.load(path).table), Nowhere())
else:
    {"parquet": parquet, "dict": dict_lines}[form].write(parse_file(Path(path)), Nowhere())
print(pa.default_memory_pool().max_memory() + tracemalloc.get_traced_memory()[1])
"""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write two captures that differ in the length of their texts alone."""
    folder = tmp_path_factory.mktemp("captures")
    paths = [folder / f"{times}.sqlite" for times in (1, 10)]
    truths = [generate(path, "--kernels", "4000", "--long", path.stem) for path in paths]
    assert truths[0] == truths[1]
    return paths


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("parquet", marks=pytest.mark.long),
        pytest.param("dict", marks=pytest.mark.long),
        pytest.param("export", marks=pytest.mark.long),
    ],
)
def test_texts_ten_times_as_long_take_no_more_memory(captures: list[Path], form: str) -> None:
    """From SQLite to the written file, in Arrow and NumPy."""
    found = [python("-c", PEAK_BYTES, str(path), form) for path in captures]
    assert [run.stderr for run in found] == ["", ""]
    short, long = (int(run.stdout) for run in found)
    assert long < 1.25 * short
