"""`pyprof export`: the suffix selects the format, and help lists all."""

from pathlib import Path

import pytest

from pyprof import export
from tests.analysis.captured import capture
from tests.commands import run

SUFFIXES = [suffix for form in export.FORMATS for suffix in form.suffixes]


def test_an_unknown_suffix_is_a_usage_error(tmp_path: Path) -> None:
    done = run("export", capture(tmp_path / "net.sqlite"), "-o", tmp_path / "net.xyz")
    assert done.code == 2
    assert all(suffix in done.stderr for suffix in (".prof", ".speedscope.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["net.sqlite"]


def test_the_longest_suffix_counts() -> None:
    modules = {name: form.module for name in ("x.json", "x.speedscope.json", "x.PT.TRACE.JSON")
               if (form := export.find(name))}  # fmt: skip
    assert modules == {
        "x.json": "as_json",
        "x.speedscope.json": "as_speedscope",
        "x.PT.TRACE.JSON": "as_trace",
    }


def test_each_module_is_a_format() -> None:
    folder = Path(export.__file__).parent
    assert [form.module for form in export.FORMATS] == sorted(
        path.stem for path in folder.glob("as_*.py")
    )
    assert len(SUFFIXES) == len(set(SUFFIXES))
    for form in export.FORMATS:
        assert (form.load().__doc__ or "").startswith(form.description)
        assert form.description


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_suffix_writes_a_file(tmp_path: Path, suffix: str) -> None:
    """Also from records, which hold less than a capture."""
    source = capture(tmp_path / "net.sqlite")
    assert run("parse", source, "-o", tmp_path / "net.dict").code == 0
    for given in (source, tmp_path / "net.dict"):
        done = run("export", given, "-o", tmp_path / f"out{suffix}")
        assert (done.code, done.stdout) == (0, ""), done.stderr
        assert (tmp_path / f"out{suffix}").stat().st_size


@pytest.mark.parametrize("form", export.FORMATS, ids=lambda form: form.module)
def test_help_names_each_format(form: export.Format) -> None:
    done = run("export", "--help")
    assert form.suffixes[0] in done.stdout
    assert " ".join(form.description.split()[:3]) in " ".join(done.stdout.split())
