"""Options that others replaced."""

from pathlib import Path

import pytest

from pyprof.cli import former_options
from tests.commands import misused, run
from tests.known import known

PEAKS = ("prof", "--csv", "-c", "eff,peak")
CARD = "NVIDIA A100-SXM4-40GB"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "former", "now"),
    [
        (PEAKS, ["--peak-flops", "1T", "--peak-bandwidth=2G"],
         ["--gpu", "flops=1T,bandwidth=2G"]),
        (PEAKS, ["--gpu", CARD, "--clock-mhz", "705"], ["--gpu", f"{CARD},clock=705"]),
        (("summary",), ["--by", "layer", "--depth", "1"], ["--by", "layer:1"]),
        (("lines",), ["--full"], ["-v"]),
        (("ranks",), ["--csv", "--table", "steps"], ["--csv", "steps"]),
        (("ranks",), ["--table=groups", "--csv"], ["--csv", "groups"]),
    ],
)  # fmt: skip
def test_a_former_option_still_works(
    command: tuple[str, ...], former: list[str], now: list[str], net: Path
) -> None:
    old, new = run(*command, "-q", *former, net), run(*command, "-q", *now, net)
    assert (old.code, old.stdout) == (0, new.stdout)
    assert new.stdout != run(*command, "-q", net).stdout
    assert f" is now {now[0]}" in old.stderr
    assert "is now" not in new.stderr


def test_a_former_address_of_a_cluster_is_one_of_workers(net: Path) -> None:
    done = run("parse", net, "--dask", "tcp://127.0.0.1:1")
    assert done.code == 1
    assert "--dask is now --workers tcp://127.0.0.1:1" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["summary", "x", "--force"], ["run", "--each", "x.py"], ["diff", "a", "b", "--html"],
     ["ranks", "x", "--raw"]],
)  # fmt: skip
def test_an_option_without_replacement_says_what_to_do(arguments: list[str]) -> None:
    assert "is gone: " in misused(*arguments)


def test_options_of_the_users_script_stay_its_own(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text("import sys; print(*sys.argv[1:])")
    done = run("capture", "--tool", "torch", "-o", tmp_path / "net", script, "--force", "--raw")
    assert "--force --raw" in done.stdout


def test_a_missing_value_is_an_error() -> None:
    assert former_options.rewritten("prof", "--peak-flops", ["x", "--peak-flops"]) is None


def test_a_device_to_measure_is_the_value_of_measure() -> None:
    for former in (["--measure", "--device", "cpu"], ["--device=cpu", "--measure"]):
        words, note = known(former_options.rewritten("peaks", "--device", former))
        assert (words, note) == (["--measure", "--measure", "cpu"], "--device is now --measure cpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("former", "content"),
    [("--graph-captures", '{"traceEvents": []}'), ("--model-config", '{"hidden_size": 8}')],
)
def test_a_former_file_beside_a_capture_is_one_of_with(
    former: str, content: str, net: Path, tmp_path: Path
) -> None:
    extra = tmp_path / "extra.json"
    extra.write_text(content)
    done = run("prof", "-c", "kernel", former, extra, net)
    assert (done.code, f"{former} is now --with {extra}" in done.stderr) == (0, True)
    assert done.stdout == run("prof", "-c", "kernel", "--with", extra, net).stdout


def test_an_option_that_another_command_had_is_unknown(net: Path) -> None:
    said = misused("prof", "--memory", "x.pickle", net)
    assert "No such option" in said
    assert "is now" not in said
