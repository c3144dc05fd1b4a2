"""Files besides captures are recognised by their content."""

import json
from pathlib import Path

import pytest

from pyprof.errors import CaptureError
from pyprof.inputs.extra_files import kind_of
from tests.allocations import built
from tests.analysis.captured import capture
from tests.capture_files.ncu import Profiled, ncu_csv
from tests.commands import run
from tests.readers.kineto_json import text


def test_each_kind_is_recognised_whatever_its_name(tmp_path: Path) -> None:
    trace, config, model = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "model"
    trace.write_text(text([]))
    config.write_text(json.dumps({"hidden_size": 64}))
    model.mkdir()
    (model / "config.json").write_bytes(config.read_bytes())
    snapshot = built.write(tmp_path / "c.txt", built.training(2))
    counters = ncu_csv(tmp_path / "d.txt", [Profiled("a")])
    found = [kind_of(str(each)) for each in (trace, config, model, snapshot, counters, tmp_path)]
    assert found == ["graphs", "model", "model", "snapshot", "counters", "graphs"]


def test_wrong_use_of_an_extra_file_is_a_usage_error(tmp_path: Path) -> None:
    net, config = capture(tmp_path / "net.sqlite"), tmp_path / "config.json"
    config.write_text('{"hidden_size": 64}')
    unused = run("parse", "--with", config, net)
    assert (unused.code, unused.stdout) == (2, "")
    assert "this command does not use a model's config.json" in " ".join(unused.stderr.split())
    assert run("prof", "--with", config, "--with", config, net).code == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello", "not a file to read with a capture (a text file); --with takes traces"),
        (b"", "the file is empty"),
        (b"{}", "is not a model configuration: it has no size of a model, such as hidden_size;"),
    ],
)
def test_other_files_are_refused(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(CaptureError) as raised:
        kind_of(str(path))
    assert why in str(raised.value)
