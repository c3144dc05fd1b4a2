"""Files that are read together with captures."""

from pathlib import Path

import pytest

from pyprof.readers import sidecars


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("kernel_annotations_rank0.json.gz", True),
        ("my_Annotation.pkl", True),
        ("annotations.txt", False),
        ("trace.json", False),
    ],
)
def test_annotations_are_known_by_name(name: str, holds: bool) -> None:  # noqa: FBT001 - a case
    assert sidecars.is_annotations(Path(name)) is holds


def test_what_may_be_read_with_captures_lies_in_three_folders(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "capture_traces").mkdir(parents=True)
    wanted = {
        tmp_path / "kernel_annotations_rank1.json",
        folder / "kernel_information.json",
        folder / "annotations.pkl",
        folder / "capture_traces" / "any.json",
    }
    for path in (*wanted, tmp_path / "kernel_information.json", folder / "notes.txt"):
        path.touch()
    assert {*sidecars.read_with_captures(folder)} == wanted


def test_a_folder_that_does_not_exist_has_no_files(tmp_path: Path) -> None:
    assert [*sidecars.in_graph_captures(tmp_path / "none")] == []
