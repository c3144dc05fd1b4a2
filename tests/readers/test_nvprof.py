"""nvprof databases: ranges from their rows, threads from their blobs, no kernel lost."""

from pathlib import Path

import pytest

from pyprof import readers, schema
from tests.builders import Range, Work, nvprof_db
from tests.readers.test_nsys import rows

HIGH_TID = 3_940_300_608  # as pthread gives them: a negative signed int32 in the API tables

WORK = (
    Work("_Z4gemmPf", at=(1000, 1100), call=(10, 20), tid=HIGH_TID),
    Work("_Z4reluPf", at=(1200, 1250), call=(30, 40), tid=HIGH_TID, driver=True),
    Work(kind="memcpy", at=(1300, 1400), call=(50, 60), tid=HIGH_TID, copy_kind=2, bytes=77),
    Work(kind="memset", at=(1500, 1510), call=(70, 80), tid=HIGH_TID, bytes=88),
    Work("_Z4edgePf", at=(1700, 1710)),
)
RANGES = (
    Range("layer:encoder", (5, 100), tid=HIGH_TID),
    Range("mm, seq = 4", (8, 25), tid=HIGH_TID),
    Range("still open", (9, None), tid=HIGH_TID),
)


@pytest.mark.parametrize("version", [11, 12])
def test_everything_comes_out(version: int, tmp_path: Path) -> None:
    capture = readers.read(nvprof_db(tmp_path / "net.sql", WORK, RANGES, version=version))
    schema.check(capture)
    assert (capture.tool, capture.version) == ("nvprof", f"CUPTI {version}")
    assert rows(capture.activities, "start", "end", "kind", "corr", "name", "bytes") == [
        (1000, 1100, schema.KERNEL, 1, "_Z4gemmPf", None),
        (1200, 1250, schema.KERNEL, 2, "_Z4reluPf", None),
        (1300, 1400, schema.MEMCPY, 3, "[CUDA memcpy DtoH]", 77),
        (1500, 1510, schema.MEMSET, 4, "[CUDA memset]", 88),
        (1700, 1710, schema.KERNEL, 5, "_Z4edgePf", None),
    ]
    assert rows(capture.calls, "start", "end", "corr", "name")[0] == (10, 20, 1, "cudaLaunchKernel")
    assert len(capture.calls) == 4
    assert rows(capture.ranges, "start", "end", "text") == [
        (5, 100, "layer:encoder"),
        (8, 25, "mm, seq = 4"),
        (9, None, "still open"),
    ]
    # calls have a signed 32-bit id, markers an eight-byte blob
    assert rows(capture.threads, "pid", "tid") == [(1, HIGH_TID)]


def test_a_marker_blob_holds_a_process_and_64_bits_of_thread(tmp_path: Path) -> None:
    """Threads that differ in their low 32 bits, or in their process, are two."""
    ranges = [
        Range("a", (1, 2), tid=7),
        Range("b", (1, 2), tid=8),
        Range("c", (1, 2), pid=2, tid=7),
    ]
    capture = readers.read(nvprof_db(tmp_path / "net.sql", WORK[:1], ranges))
    assert {(1, 7), (1, 8), (2, 7)} <= set(rows(capture.threads, "pid", "tid"))


def test_the_gpu_is_described_in_base_units(tmp_path: Path) -> None:
    """Nvprof stores kHz and kB/s; the device has Hz and bytes/s."""
    (device,) = readers.read(nvprof_db(tmp_path / "net.sql", WORK)).devices.to_pylist()
    assert device["name"] == "Tesla V100-SXM2-32GB"
    assert (device["clock_hz"], device["bandwidth"]) == (1_530_000_000, 877_000_000_000)
    assert (device["sm_count"], device["cc_major"], device["cc_minor"]) == (80, 7, 0)


def test_copies_of_every_kind_are_named_as_nvprof_printed_them(tmp_path: Path) -> None:
    """CUPTI's kinds by number; an unknown kind is still a copy."""
    work = [
        Work(kind="memcpy", copy_kind=kind, at=(kind, kind + 1)) for kind in (1, 2, 8, 10, 11, 99)
    ]
    capture = readers.read(nvprof_db(tmp_path / "net.sql", work))
    names = capture.activities.sort_by("start").column("name").to_pylist()
    assert names == [
        *("[CUDA memcpy HtoD]", "[CUDA memcpy DtoH]", "[CUDA memcpy DtoD]"),
        *("[CUDA memcpy PtoP]", "[CUDA Unified Memory memcpy HtoD]", "[CUDA memcpy]"),
    ]
