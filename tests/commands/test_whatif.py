"""`pyprof whatif`: predictions in the terminal and as JSON."""

import json
from pathlib import Path

import pytest

from pyprof.parse import parse
from pyprof.records import dict_lines
from tests.analysis.captures import training
from tests.commands import run


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return dict lines of a few steps of training."""
    path = tmp_path / "net.dict"
    with path.open("wb") as file:
        dict_lines.write(parse(training(2)), file)
    return path


def test_every_change_is_predicted_or_refused(net: Path) -> None:
    """Without options, each rule once."""
    done = run("whatif", "--json", net)
    assert done.code == 0
    answer = json.loads(done.stdout)
    answers = (*answer["changes"], *answer["bounds"], *answer["refused"])
    assert sorted(each["change"] for each in answers) == [
        *("--dtype bf16", "--dtype fp16", "--dtype tf32"),
        *("--fuse attention", "--fuse pointwise", "--fused-optimizer", "--graphs", "--overlap"),
    ]


def test_an_option_asks_for_one_change(net: Path) -> None:
    """Others are not mentioned."""
    done = run("whatif", "--dtype", "tf32", net)
    assert (done.code, done.stderr) == (0, "")
    assert "--dtype tf32" in done.stdout
    assert "pointwise" not in done.stdout


def test_several_fusions_are_asked_for_with_a_comma(net: Path) -> None:
    """Each is predicted or refused; other texts are a usage error."""
    done = run("whatif", "--fuse", "attention,pointwise", "--json", net)
    answer = json.loads(done.stdout)
    said = [each["change"] for each in (*answer["changes"], *answer["refused"])]
    assert sorted(said) == ["--fuse attention", "--fuse pointwise"]
    assert run("whatif", "--fuse", "attention,all", net).code == 2


def test_another_gpu_is_a_target_not_a_name_of_this_one(net: Path) -> None:
    """It is named in the change, predicted or refused; invalid factors are a usage error."""
    done = run("whatif", "--gpu", "MI300X", "--batch", "2x", "--json", net)
    answer = json.loads(done.stdout)
    said = [each["change"] for each in (*answer["changes"], *answer["refused"])]
    assert sorted(said) == ["--batch 2x", "--gpu MI300X"]
    assert run("whatif", "--batch", "many", net).code == 2


@pytest.mark.parametrize("option", ["--dtype=int3", "--gpu=nosuch"])
def test_an_unknown_type_or_gpu_is_a_usage_error(net: Path, option: str) -> None:
    """Exit code 2."""
    assert run("whatif", option, net).code == 2
