"""Host, user and environment of the machine that was profiled are never copied anywhere."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from pyprof.report import exporters
from tests.builders import LAYOUTS, SECRETS, Range, Work, nsys_db, nvprof_db
from tests.commands import run

WORK = [Work(call=(1, 2)), Work(kind="graph", at=(1200, 1300), call=(3, 4))]
RANGES = [Range("aten::mm, seq = 1", (0, 5))]

FILES: dict[str, Callable[[Path], Path]] = {
    "nvprof": lambda folder: nvprof_db(folder / "net.sql", WORK, RANGES),
    **{
        f"nsys {name}": lambda folder, layout=layout: nsys_db(  # type: ignore[misc]
            folder / "net.sqlite", WORK, RANGES, layout
        )
        for name, layout in LAYOUTS.items()
    },
}


@pytest.mark.parametrize("make", FILES.values(), ids=FILES)
def test_no_output_holds_them(make: Callable[[Path], Path], tmp_path: Path) -> None:
    """Not in dict lines, Parquet, reports, summaries or messages."""
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
    *(["export", "FILE", "-o", f"out{s}"] for form in exporters.formats() for s in form.suffixes),
]


@pytest.mark.parametrize("make", [FILES["nvprof"], [*FILES.values()][-1]], ids=["nvprof", "nsys"])
@pytest.mark.parametrize("arguments", REPORTS, ids=" ".join)
def test_no_report_holds_them(
    arguments: list[str], make: Callable[[Path], Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Nor in what is made to be sent."""
    if "report" in arguments:
        pytest.importorskip("bokeh")
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path)
    there = {*tmp_path.iterdir()}
    done = run(*(path if text == "FILE" else text for text in arguments))
    assert done.code == 0, done.stderr
    written = b"".join(new.read_bytes() for new in {*tmp_path.iterdir()} - there)
    if arguments[-1].endswith(".gz"):
        written = gzip.decompress(written)
    said = written + done.stdout.encode() + done.stderr.encode()
    assert not any(secret.encode() in said for secret in SECRETS)
