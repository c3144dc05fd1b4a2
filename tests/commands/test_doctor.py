"""`pyprof doctor` for a machine and for a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pyprof.capture import machine
from pyprof.commands.doctor import command
from tests.builders import Work, nsys_db
from tests.commands import misused, refused, run


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def described(
        *,
        gpus: tuple[str, ...] = (),
        nsys: str | None = None,
        version: tuple[int, ...] = (2024, 6, 1),
        packages: dict[str, str] | None = None,
    ) -> str:
        known = packages or {}
        monkeypatch.setattr(machine, "find_gpus", lambda: gpus)
        monkeypatch.setattr(machine, "find_nsys", lambda: nsys)
        monkeypatch.setattr(machine, "nsys_version", lambda _: version)
        monkeypatch.setattr(machine, "output", lambda *_: "CUDA Version: 12.4")
        monkeypatch.setattr(machine, "_installed_version", known.get)
        return "\n".join(str(finding) for finding in machine.findings())

    return described


NO_TORCH = "bad   torch is not installed in this Python\n      -> pip install torch"


@pytest.mark.parametrize(
    ("there", "findings"),
    [
        ({}, [NO_TORCH, "note  no NVIDIA GPU is visible", "note  nsys is not installed"]),
        ({"gpus": ("NVIDIA H100",) * 2}, ["ok    2 x NVIDIA H100", "bad   nsys is not installed"]),
        ({"nsys": "/opt/nsys"}, ["ok    nsys 2024.6.1 at /opt/nsys"]),
    ],
    ids=["a bare machine", "a GPU without nsys", "nsys"],
)
def test_what_is_there_and_what_is_missing_is_listed(
    there: dict[str, Any], findings: list[str], place: Callable[..., str]
) -> None:
    said = place(**there)
    assert [text for text in findings if text not in said] == []


@pytest.mark.parametrize(
    ("cuda", "said"),
    [
        (None, ["bad   torch cannot use the GPU: it is a build without CUDA"]),
        ("13.0", ["bad   the driver supports CUDA 12.4, torch needs CUDA 13.0"]),
        ("12.1", []),
    ],
)
def test_a_torch_that_cannot_use_the_gpu_is_bad(
    cuda: str | None, said: list[str], place: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", cuda)
    found = place(gpus=("NVIDIA H100",), packages={"torch": "2.13.0"}).splitlines()
    assert [text for text in found if text.startswith("bad") and "CUDA" in text] == said


@pytest.mark.parametrize(
    ("version", "nvtx", "lost"),
    [
        ((2022, 4, 2), "0.2.12", True),
        ((2022, 4, 2), "0.2.11", False),
        ((2023, 1, 1), "0.2.14", False),
    ],
)
def test_an_nsys_too_old_for_the_nvtx_package_is_reported(
    place: Callable[..., str], version: tuple[int, ...], nvtx: str, *, lost: bool
) -> None:
    said = place(nsys="/opt/nsys", version=version, packages={"nvtx": nvtx})
    assert (f"ranges of the nvtx package {nvtx} are lost" in said) is lost


def test_doctor_works_on_this_machine() -> None:
    result = CliRunner().invoke(command)
    assert result.exit_code == 0
    assert result.stdout.startswith("ok    pyprof ")


def test_counters_need_a_capture(tmp_path: Path) -> None:
    counters = tmp_path / "ncu.csv"
    counters.write_text('"ID","Process ID","Process Name","Host Name","Kernel Name","Context"\n')
    assert "--with goes with a CAPTURE" in misused("doctor", "--with", counters)


def test_a_capture_on_stdin_is_refused() -> None:
    assert "cannot be read from stdin; save to a file" in refused("doctor", "-")


def test_a_capture_at_a_url(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    path = nsys_db(tmp_path / "net.sqlite", [Work(call=(1, 2))], [])
    fsspec.filesystem("memory").put(str(path), "/doctor/net.sqlite")
    told = run("doctor", "memory://doctor/net.sqlite")
    assert told.code == 0
    assert told.stdout == run("doctor", path).stdout.replace(
        str(path), "memory://doctor/net.sqlite"
    )
    assert "memory://doctor/none: no such file" in run("doctor", "memory://doctor/none").stderr


@pytest.mark.slow
def test_a_capture_without_pitfalls_says_so(captures: Path) -> None:
    done = run("doctor", captures / "kineto-v100-resnet50-2021" / "trace.json.gz")
    assert (done.code, "no pitfalls found" in done.stdout) == (0, True)
