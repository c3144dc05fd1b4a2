"""Files between the processes of a trial."""

from pathlib import Path

from pyprof.trial.change import Chosen
from pyprof.trial.run_files import RunRequest, RunResult


def test_a_request_round_trips(tmp_path: Path) -> None:
    request = RunRequest(
        name="a.py", args=("-x", "1"), module=False, changes=(Chosen("threads", "2"),),
        steps=3, seed=True, mode="time", result="r.json",
    )  # fmt: skip
    request.write(tmp_path / "request.json")
    assert RunRequest.read(tmp_path / "request.json") == request


def test_a_result_round_trips_without_a_temporary_file_left(tmp_path: Path) -> None:
    result = RunResult(step_ns=[1.0, 2.5], losses=[float("inf")], refused={"a": "b"})
    result.write(tmp_path / "result.json")
    assert RunResult.read(tmp_path / "result.json") == result
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
