"""The same options choose peaks in every command."""

import re
from pathlib import Path

import pytest

from tests.commands import misused, refused, run
from tests.conftest import long_except

COMMANDS = {
    # command: what it writes, and its other options
    "prof": ("net.csv", "--csv", "-c", "eff,peak"),
    "summary": ("net.txt",),
    "report": ("net.html",),
    "roofline": ("net.svg",),
    "export": ("net.csv",),
}

IDS = re.compile(r"\bp\d+\b|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|<dt>command.*?</dd>")
"""Names that the drawing libraries number anew in each picture, and the page's command."""


@pytest.mark.slow
@pytest.mark.parametrize("command", long_except(COMMANDS, "summary"))
def test_every_report_uses_the_given_peak(command: str, net: Path) -> None:
    name, *more = COMMANDS[command]

    def written(*options: str) -> str:
        target = net.with_name(name)
        done = run(command, "-q", *more, *options, "-o", target, net)
        assert (done.code, done.stderr) == (0, "")
        return IDS.sub("", target.read_text("utf-8"))

    asked = written("--gpu", "bandwidth=1T")
    assert written("--gpu", "bandwidth=1000 GB/s") == asked
    assert written("--gpu", "bandwidth=2T") != asked
    assert written("--gpu", "Tesla T4") != written("--gpu", "NVIDIA H200")


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1410", "0", "1e999", "fast"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_invalid_clock_is_a_usage_error(command: str, text: str, net: Path) -> None:
    target = net.with_name(COMMANDS[command][0])
    said = misused(command, f"--gpu=clock={text}", "-o", target, net)
    assert f"'{text}' is not a number above 0, such as 1410" in said
    assert not target.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_device_is_an_error(command: str, net: Path) -> None:
    target = net.with_name(COMMANDS[command][0])
    said = refused(command, "--gpu", "NVIDIA B9000", "-o", target, net)
    assert "no peaks known for 'NVIDIA B9000': see pyprof peaks" in said
    assert not target.exists()


def test_a_unique_part_of_a_card_name_is_enough(net: Path) -> None:
    def shown(name: str) -> str:
        return run("prof", "-q", "-c", "peak", "--gpu", name, net).stdout

    assert shown("t4") == shown("Tesla T4") != ""
    assert shown("h100 nvl") == shown("NVIDIA H100 NVL") != shown("H200 SXM")
    assert refused("prof", "--gpu", "H10", net) == (
        "pyprof: 'H10' matches several cards (H100 SXM, H100 PCIe, H100 NVL): name one\n"
    )


@pytest.mark.parametrize("arguments", [("prof", "--gpu", "H101"), ("peaks", "H101")])
def test_a_misspelt_card_is_suggested(arguments: tuple[str, ...], net: Path) -> None:
    said = refused(*arguments, *[net] * (arguments[0] == "prof"))
    assert "no peaks known for 'H101'; did you mean 'H100'?" in said
