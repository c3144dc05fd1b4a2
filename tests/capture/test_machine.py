"""GPUs and tools of a machine."""

from pathlib import Path

import pytest

from pyprof.capture import machine


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("NVIDIA Nsight Systems version 2024.6.1.90-246160830v0\n", (2024, 6, 1)),
        ("NVIDIA Nsight Systems version 2022.4.2.1-df9881f\n", (2022, 4, 2)),
        ("NVIDIA Nsight Systems version 2021.2\n", (2021, 2, 0)),
        ("something else", None),
        (None, None),
    ],
)
def test_the_version_is_found_in_nsyss_sentence(
    monkeypatch: pytest.MonkeyPatch, said: str | None, expected: tuple[int, ...] | None
) -> None:
    monkeypatch.setattr(machine, "output", lambda *_: said)
    assert machine.nsys_version("nsys") == expected


@pytest.mark.parametrize("value", ["", "-1"])
def test_hidden_gpus(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    monkeypatch.setattr(machine, "output", lambda *_: "NVIDIA A100\n")
    machine.find_gpus.cache_clear()
    try:
        assert machine.find_gpus() == ()
    finally:
        machine.find_gpus.cache_clear()


def test_newest_nsys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("2022.4.2", "2024.10.1", "2024.6.1"):
        path = tmp_path / version / "bin" / "nsys"
        path.parent.mkdir(parents=True)
        path.touch(mode=0o755)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(machine, "_PLACES", (f"{tmp_path}/*/bin/nsys",))
    assert machine.find_nsys() == str(tmp_path / "2024.10.1" / "bin" / "nsys")


@pytest.mark.parametrize(
    ("nsys", "expected"),
    [("/opt/nsys/bin/nsys", True), ("/usr/lib/nsight-systems/target-linux-x64/nsys", False)],
)
def test_only_nsys_of_debian_can_lack_its_importer(
    monkeypatch: pytest.MonkeyPatch, nsys: str, *, expected: bool
) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda _: True)
    monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    assert machine._importer_is_found(nsys) is expected


def test_a_missing_program_has_no_version() -> None:
    assert machine.output("no-such-program-anywhere") is None
