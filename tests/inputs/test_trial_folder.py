"""Folders of `pyprof try`, read by other commands."""

import json
from pathlib import Path

import pytest

from pyprof.errors import CaptureError
from pyprof.inputs import find, trial_folder
from tests.analysis.captured import capture
from tests.commands import run


def _folder(path: Path, *profiled: str) -> Path:
    """Write a trial whose named variants were profiled, each into NAME.sqlite."""
    path.mkdir()
    runs: list[dict[str, object]] = [{"mode": "time", "changes": [], "capture": ""}]
    for name in profiled:
        file = capture(path / f"{name}.sqlite", steps=2)
        changes = [] if name == "baseline" else [name]
        runs.append({"mode": "profile", "changes": changes, "capture": f"/elsewhere/{file.name}"})
    (path / "runs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in runs))
    return path


def test_a_trial_is_its_baseline_and_not_ranks(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "a.try", "baseline", "bf16")
    assert find.find([str(folder)]) == [str(folder / "baseline.sqlite")]
    of_folder, of_file = run("summary", folder), run("summary", "-q", folder / "baseline.sqlite")
    assert of_folder.stderr.startswith("pyprof: ")
    assert "a trial; this is its run without a change, baseline.sqlite" in of_folder.stderr
    assert of_folder.stdout == of_file.stdout
    assert "a trial" not in run("summary", "-q", folder).stderr


def test_a_trial_without_a_baseline_names_its_captures(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"without a capture of its baseline; name one of bf16"):
        find.find([str(_folder(tmp_path / "a.try", "bf16"))])
    with pytest.raises(CaptureError, match="no run of it was profiled"):
        find.find([str(_folder(tmp_path / "b.try"))])


@pytest.mark.parametrize("text", ["", "{}\n", "no JSON\n", "[1]\n"])
def test_other_folders_are_not_trials(tmp_path: Path, text: str) -> None:
    (tmp_path / "runs.jsonl").write_text(text)
    assert trial_folder.baselines(tmp_path) == []
    assert trial_folder.baselines(tmp_path / "absent") == []


def test_a_trial_of_ranks_is_all_ranks_of_its_baseline(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "a.try", "baseline", "bf16")
    log = folder / "runs.jsonl"
    log.write_text(log.read_text().replace("baseline.sqlite", "baseline.rank0.sqlite"))
    (folder / "baseline.sqlite").rename(folder / "baseline.rank0.sqlite")
    ranks = [folder / "baseline.rank0.sqlite", capture(folder / "baseline.rank1.sqlite", steps=2)]
    assert trial_folder.baselines(folder) == ranks
    tried = {"baseline": {"capture": f"/elsewhere/{ranks[0].name}"}, "changes": []}
    (folder / "try.json").write_text(json.dumps(tried))
    assert [trial_folder.answer_beside(rank) for rank in ranks] == [tried, tried]
    assert trial_folder.answer_beside(folder / "bf16.sqlite") is None
