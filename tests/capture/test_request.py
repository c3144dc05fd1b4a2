"""When to record, and under which file name."""

from pathlib import Path

import pytest

from pyprof.capture.request import (
    StepsToRecord,
    add_rank,
    make_room_for_snapshot,
    mentions_range,
    rank,
)
from pyprof.errors import PyprofError


def test_three_or_four_counts_of_steps_are_parsed() -> None:
    assert StepsToRecord.parse("5, 2,3") == StepsToRecord(5, 2, 3, 1)
    assert StepsToRecord.parse(str(StepsToRecord(5, 2, 3, 0))) == StepsToRecord(5, 2, 3, 0)


@pytest.mark.parametrize("text", ["", "5", "1,2", "1,2,3,4,5", "a,b,c", "1,1,-1", "1,1,0"])
def test_other_counts_of_steps_are_an_error_with_an_example(text: str) -> None:
    with pytest.raises(PyprofError, match="count"):
        StepsToRecord.parse(text)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("torch.cuda.profiler.start()", True),
        ("from torch.cuda import profiler as p\nwith p.profile(): pass", True),
        ("from torch.cuda.profiler import start\nstart()", True),
        ("from pyprof import profile\nwith profile(): pass", True),
        ("import pyprof as p\nrun = p.profile()(run)", True),
        ("lib.getattr(x).cudaProfilerStart()", True),
        ("from pyprof.trainers.lightning import PyprofCallback as C\nf(C())", True),
        ("from torch.profiler import profile\nwith profile(): pass", False),
        ("# torch.cuda.profiler.start()", False),
        ("'with pyprof.profile(): pass'", False),
        ("torch.cuda.profiler.stop()", False),
        ("broken(", False),
        ("import torch.cuda.profiler as profiler\nprofiler.start()", True),
        ("with pyprof.profile(): pass", True),
        ("torch.cuda.cudart().cudaProfilerStart()", True),
        ("model.train()", False),
        ("profile = load_profile(name)", False),
    ],
)
def test_a_range_is_found_in_code_not_in_texts(source: str, *, expected: bool) -> None:
    assert mentions_range(source) is expected


LAUNCHERS = [
    ({"RANK": "3", "WORLD_SIZE": "8"}, 3),
    ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 1),
    ({"SLURM_PROCID": "2", "SLURM_NTASKS": "4"}, 2),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, None),
    ({"RANK": "x", "WORLD_SIZE": "2"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("environment", "expected"), LAUNCHERS)
def test_rank(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: int | None
) -> None:
    for given, _ in LAUNCHERS:
        for name in given:
            monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert rank() == expected
    assert add_rank("net") == ("net" if expected is None else f"net.rank{expected}")


@pytest.mark.parametrize(("text", "stays"), [('{"pyprof_version": "0.1.0"}', True), ("{}", False)])
def test_a_snapshot_is_replaced_only_with_a_capture_of_ours(
    text: str, tmp_path: Path, *, stays: bool
) -> None:
    capture, snapshot = tmp_path / "net.json", tmp_path / "net.memory.pickle"
    capture.write_text(text)
    snapshot.touch()
    make_room_for_snapshot(capture)
    assert snapshot.exists() is stays
    assert snapshot.with_name("net.memory.pickle.old").exists() is not stays
