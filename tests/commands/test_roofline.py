"""`pyprof roofline`: ops as points under the roofs of their device, in every format."""

from pathlib import Path

import pytest

from tests.commands import run


def test_without_any_peak_there_are_points_and_no_roof(net: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = tmp_path / "net.dict"
    assert run("parse", net, "-o", text).code == 0
    text.write_text(text.read_text().replace("NVIDIA A100-SXM4-80GB", "NVIDIA B9000"))
    done = run("roofline", text, "-o", tmp_path / "net.html")
    assert done.code == 0
    assert "--gpu flops=F" in done.stderr


@pytest.mark.parametrize("target", ["net", "net.jpg", "-"])
def test_an_unknown_format_is_a_usage_error(net: Path, target: str) -> None:
    done = run("roofline", net, "-o", target)
    assert done.code == 2
    assert ".png, .svg, .pdf, .html" in " ".join(done.stderr.split())


def test_a_capture_without_costs_says_so(captures: Path, tmp_path: Path) -> None:
    target = tmp_path / "net.png"
    done = run("roofline", captures / "nsys2026.2-h100x2-fsdp" / "net.sqlite", "-o", target)
    assert (done.code, done.stdout, target.exists()) == (1, "", False)
    assert "no op in this file has known FLOPs and bytes" in done.stderr
