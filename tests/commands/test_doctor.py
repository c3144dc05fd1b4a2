"""`pyprof doctor` for a machine and for a file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyprof.capture import machine
from pyprof.commands.doctor import command
from tests.builders import Work, nsys_db
from tests.commands import run

CAPTURES = Path(__file__).resolve().parents[2] / ".." / "shared" / "captures"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:

    def described(
        *,
        gpus: tuple[str, ...] = (),
        nsys: str | None = None,
        version: tuple[int, ...] = (2024, 6, 1),
        smi: str = "CUDA Version: 12.4",
        packages: dict[str, str] | None = None,
    ) -> str:
        known = packages or {}
        monkeypatch.setattr(machine, "find_gpus", lambda: gpus)
        monkeypatch.setattr(machine, "find_nsys", lambda: nsys)
        monkeypatch.setattr(machine, "nsys_version", lambda _: version)
        monkeypatch.setattr(machine, "output", lambda *_: smi)
        monkeypatch.setattr(machine, "_installed", known.get)
        return "\n".join(str(finding) for finding in machine.findings())

    return described


def test_a_bare_machine_has_remedies(place: Callable[..., str]) -> None:
    """Without torch, GPU and nsys; other findings are notes."""
    said = place()
    assert "bad   torch is not installed in this Python\n      -> pip install torch" in said
    assert "note  no NVIDIA GPU is visible" in said
    assert "note  nsys is not installed" in said


def test_gpu_without_nsys(place: Callable[..., str]) -> None:
    said = place(gpus=("NVIDIA H100", "NVIDIA H100"))
    assert "ok    2 x NVIDIA H100" in said
    assert "bad   nsys is not installed" in said


def test_an_installed_nsys_has_its_version_and_path(place: Callable[..., str]) -> None:
    assert "ok    nsys 2024.6.1 at /opt/nsys" in place(nsys="/opt/nsys")


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
    """And begins with what it is."""
    result = CliRunner().invoke(command)
    assert result.exit_code == 0
    assert result.stdout.startswith("ok    pyprof ")


def test_a_file_that_is_no_capture_is_refused(tmp_path: Path) -> None:
    """In one line."""
    path = tmp_path / "notes.txt"
    path.write_text("some text")
    result = CliRunner().invoke(command, [str(path)])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "notes.txt" in result.stderr


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.skipif(not CAPTURES.exists(), reason="the captures are not here")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nsys2024.6-a100-cudagraph/net.sqlite", "CUDA graph launches"),
        ("nsys2026.2-h100x2-fsdp/net.sqlite", "2 processes used a GPU"),
        ("nsys2026.2-h100x2-fsdp/net.sqlite", "are not described in the file"),
        ("nsys2021.2-rtx6000-no-nvtx/net.sqlite", "no NVTX ranges"),
        ("nsys2022.4-cpu-emit-nvtx-shapes/net.sqlite", "no GPU work was captured"),
        ("kineto-v100-resnet-ddp/trace.json.gz", "no shapes"),
        ("kineto-v100-resnet50-2021/trace.json.gz", "no pitfalls found"),
    ],
)
def test_real_captures_have_their_pitfalls(name: str, said: str) -> None:
    result = CliRunner().invoke(command, [str(CAPTURES / name)])
    assert result.exit_code == 0
    assert said in result.stdout


def test_a_capture_at_a_url(tmp_path: Path) -> None:
    """It is fetched as by every command, and named as the user did, without passwords."""
    fsspec = pytest.importorskip("fsspec")
    path = nsys_db(tmp_path / "net.sqlite", [Work(call=(1, 2))], [])
    fsspec.filesystem("memory").put(str(path), "/doctor/net.sqlite")
    told = run("doctor", "memory://doctor/net.sqlite")
    assert told.code == 0
    assert told.stdout == run("doctor", path).stdout.replace(
        str(path), "memory://doctor/net.sqlite"
    )
    assert "memory://doctor/none: no such file" in run("doctor", "memory://doctor/none").stderr
