"""Host, user and environment of the profiled machine are never copied to an output."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from pyprof import export
from tests.builders import LAYOUTS, SECRETS, Range, Work, nsys_db, nvprof_db, rocpd_db
from tests.commands import run

WORK = [Work(call=(1, 2)), Work(kind="graph", at=(1200, 1300), call=(3, 4))]
RANGES = [Range("aten::mm, seq = 1", (0, 5))]

FILES: dict[str, Callable[[Path], Path]] = {
    "nvprof": lambda folder: nvprof_db(folder / "net.sql", WORK, RANGES),
    "rocpd": lambda folder: rocpd_db(folder / "net.db", WORK[:1], RANGES),
    **{
        f"nsys {name}": lambda folder, layout=layout: nsys_db(  # type: ignore[misc]
            folder / "net.sqlite", WORK, RANGES, layout
        )
        for name, layout in LAYOUTS.items()
    },
}


@pytest.mark.long
@pytest.mark.parametrize("make", FILES.values(), ids=FILES)
def test_no_output_holds_the_machines_secrets(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    assert all(secret.encode() in path.read_bytes() for secret in SECRETS)
    said = []
    for suffix in (".dict", ".parquet"):
        target = tmp_path / f"out{suffix}"
        done = run("parse", path, "-o", target)
        assert done.code == 0
        said += [target.read_bytes(), done.stderr.encode()]
    every = "idx,layer,trace,mod,op,kernel,params,why,peak,kind,line,module"
    for options in (["--csv", "-c", every], ["--summary", "nvprof"], ["--by", "op"]):
        done = run("prof", *options, path)
        assert done.code == 0
        said += [done.stdout.encode(), done.stderr.encode()]
    for secret in SECRETS:
        assert all(secret.encode() not in text for text in said)


REPORTS = [
    *([name, "FILE"] for name in ("summary", "lines", "ranks", "doctor")),
    ["diff", "FILE", "FILE"],
    ["report", "FILE", "-o", "-"],
    ["ranks", "FILE", "-o", "out.json"],
    ["prof", "FILE", "--csv", "--by", "rank"],
    *(["export", "FILE", "-o", f"out{s}"] for form in export.FORMATS for s in form.suffixes),
]


def _new_content(folder: Path, before: set[Path]) -> bytes:
    """Return what new files hold, unzipped."""
    new = {path: path.read_bytes() for path in {*folder.iterdir()} - before}
    return b"".join(
        gzip.decompress(data) if path.suffix == ".gz" else data for path, data in new.items()
    )


@pytest.mark.few(8)
@pytest.mark.parametrize("arguments", REPORTS, ids=" ".join)
def test_no_shared_report_holds_the_machines_secrets(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    *_, make = FILES.values()
    path = make(tmp_path)
    there = {*tmp_path.iterdir()}
    done = run(*(path if text == "FILE" else text for text in arguments))
    assert done.code == 0, done.stderr
    said = _new_content(tmp_path, there) + done.stdout.encode() + done.stderr.encode()
    assert not any(secret.encode() in said for secret in SECRETS)


PASSWORD = "open-sesame-17"  # noqa: S105 - it opens nothing


@pytest.mark.long
@pytest.mark.parametrize("arguments", REPORTS, ids=" ".join)
def test_credentials_of_a_url_are_in_no_output(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec")
    folder = f"memory://me:{PASSWORD}@host"
    system = fsspec.filesystem("memory")
    path = FILES["nvprof"](tmp_path)
    urls = [f"{folder}/net.rank{rank}.sql?sig={PASSWORD}" for rank in range(2)]
    monkeypatch.setattr(type(system), "store", {})
    for url in urls:
        system.pipe(url, path.read_bytes())
    system.pipe(f"{folder}/bad.json", b"no trace")
    monkeypatch.chdir(tmp_path)
    there = {*tmp_path.iterdir()}
    done = run(*(urls[0] if text == "FILE" else text for text in arguments), *urls[1:])
    done = done if done.code != 2 else run(*(urls[0] if t == "FILE" else t for t in arguments))
    said = done.stdout + done.stderr + run("prof", f"{folder}/bad.json").stderr
    assert done.code in {0, 1, 2}
    assert PASSWORD not in said
    assert PASSWORD.encode() not in _new_content(tmp_path, there)


def test_credentials_of_a_url_are_in_no_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part names the capture that it was made from."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    monkeypatch.setattr(type(system), "store", {})
    url = f"memory://host/net.rank0.sql?sig={PASSWORD}"
    system.pipe(url, FILES["nvprof"](tmp_path).read_bytes())
    assert run("parse", url, "-o", f"{tmp_path}/out/").code == 0
    (part,) = (tmp_path / "out").rglob("*.parquet")
    assert PASSWORD.encode() not in part.read_bytes()
