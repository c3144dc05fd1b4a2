"""Source lines as text: a page wide, without lines that only call."""

from pathlib import Path

import pytest

from tests.analysis.captures import Work, capture, trace, write_dict
from tests.commands import run


def test_long_source_and_large_times_fit_a_page_s_width(tmp_path: Path) -> None:
    """Source is truncated to 100 columns, numbers are not; -v truncates nothing."""
    code = "y = x @ w + " + "b + " * 60 + "c"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "net.py").write_text(f"def two():\n    {code}\n")
    row = {"kShortName": "k", "kLongName": "k", "kDuration": 8 * 10**13, "trace": ["/src/net.py:2"]}
    net = tmp_path / "net.dict"
    net.write_text(f"{row}\n" * 12)
    short = run("lines", "--source", tmp_path, net).stdout
    full = run("lines", "--source", tmp_path, "-v", net).stdout
    assert max(map(len, short.splitlines())) <= 100
    assert short.count("960,000,000") == 5
    assert code in full


def _called_through(path: Path) -> Path:
    """Write a capture in which `main` and a wrapper only call, the latter in a file of its own."""
    frames = ("/src/main.py:9", "/src/wrap.py:4", "/src/net.py:5")
    work = [Work((5, 1_000_005), (2, 3)), Work((2_000_000, 2_500_000), (12, 13))]
    ranges = [trace((1, 4), *frames), trace((11, 14), *frames[:2], "/src/net.py:6")]
    return write_dict(path, capture(work, ranges=ranges))


@pytest.mark.slow
def test_lines_that_only_call_are_counted(tmp_path: Path) -> None:
    """Speeding up `main` itself is of no use; -v lists such lines with their total."""
    net = _called_through(tmp_path / "net.dict")
    short, full = run("lines", net).stdout, run("lines", "-v", net).stdout
    assert "2 lines only call others of yours (-v lists them)" in short
    assert "main.py" not in short
    assert "/src/main.py: 0 ms, 0.0 % of GPU time" in full
    assert "   9      2    1.50  100.0       0" in full


def test_functions_that_only_call_are_left_out_of_the_source(tmp_path: Path) -> None:
    """In a file that has lines with self time."""
    net = _called_through(tmp_path / "net.dict")
    source = "def one():\n    a\n\ndef two():\n    x @ w\n    x + w\n\ndef main():\n    two()\n"
    (tmp_path / "src").mkdir()
    for name in ("main", "wrap", "net"):
        (tmp_path / "src" / f"{name}.py").write_text(source)
    short = run("lines", "--source", tmp_path, net).stdout
    full = run("lines", "--source", tmp_path, "-v", net).stdout
    assert "def two" in short
    assert "def main" not in short
    assert "def main" in full


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["nsys2024.2-a100-pyprof-markers/net.sqlite", "kineto-h100-vit-inference/trace.json.gz"]
)
def test_text_fits_a_page_s_width(name: str, captures: Path) -> None:
    shown = run("lines", "-v", "-q", captures / name).stdout
    assert max(map(len, shown.splitlines())) <= 100
