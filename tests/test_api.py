"""`pyprof.summary`, `.diff`, `.memory`, `.ranks` and `.whatif` return what --json prints."""

import pydoc
import warnings
from pathlib import Path
from typing import Any

import pytest

import pyprof
from pyprof import api
from pyprof.answers.base import Answer
from tests.allocations import built
from tests.analysis.captured import capture
from tests.commands import run
from tests.programs import python


def _said(*arguments: str | Path) -> dict[str, Any]:
    content: dict[str, Any] = run(*arguments).json
    return content


def _without_warnings(answer: Answer | dict[str, Any]) -> dict[str, Any]:
    content = answer if isinstance(answer, dict) else answer.to_dict()
    return {**content, "warnings": []}


@pytest.mark.slow
def test_summary_equals_the_commands_json(net: Path) -> None:
    everything = ("--top", "1000", "--json")
    for command, arguments in (
        ((), {}),
        (("--steps", "1:"), {"steps": "1:"}),
        (("--where", "dir=fprop"), {"where": "dir=fprop"}),
    ):
        answer = api.summary(net, **arguments)  # type: ignore[arg-type]
        assert _without_warnings(answer) == _without_warnings(
            _said("summary", *command, *everything, net)
        )


@pytest.mark.slow
def test_diff_equals_the_commands_json(net: Path, tmp_path: Path) -> None:
    slower = capture(tmp_path / "slower.sqlite", steps=4, slower=3)
    answer = api.diff(net, slower)
    assert _without_warnings(answer) == _without_warnings(_said("diff", "--json", net, slower))
    by_op = api.diff(net, slower, by="op").tables["changes"]
    assert set(by_op.columns) >= {"key.op", "status", "a_ns", "b_ns"}
    with pytest.raises(ValueError, match="no key 'colour'"):
        api.diff(net, slower, by="colour")


def test_memory_equals_the_commands_json(tmp_path: Path) -> None:
    before = built.write(tmp_path / "before.pickle", built.training())
    after = built.write(tmp_path / "after.pickle", built.training(leak=1 << 20))
    assert api.memory(before).to_dict() == _said("memory", "--json", before)
    assert api.diff(before, after).to_dict() == _said("diff", "--json", before, after)


def test_ranks_equals_the_commands_json(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(2):
        capture(folder / f"net.rank{rank}.sqlite", steps=4)
    said = _said("ranks", "--json", folder)
    with warnings.catch_warnings(record=True) as warned:
        answer = api.ranks(folder)
    assert [str(each.message) for each in warned] == said["warnings"]
    assert _without_warnings(answer) == _without_warnings(said)


def test_whatif_equals_the_commands_json(net: Path) -> None:
    said = _said("whatif", "--json", net)
    assert api.whatif(net).to_dict() == said
    frame = pyprof.load(net)
    assert api.whatif(frame).to_dict() == said
    asked = api.whatif(net, dtype="bf16", fuse="attention,pointwise", batch="2x", gpu="B200")
    options = ("--dtype", "bf16", "--fuse", "attention,pointwise", "--batch", "2x", "--gpu", "B200")
    assert asked.to_dict() == _said("whatif", "--json", *options, net)
    with pytest.raises(ValueError, match="takes all rows that"):
        api.whatif(frame.head(1))
    with pytest.raises(ValueError, match="'--dtype int3' is none of"):
        api.whatif(net, dtype="int3")


def test_steps_that_do_not_exist_are_a_value_error(net: Path) -> None:
    with pytest.raises(ValueError, match="no step in '9:'; there are 4"):
        api.summary(net, steps="9:")
    with pytest.raises(ValueError, match="'last' is not a range of steps"):
        api.diff(net, net, steps="last")


def test_a_number_is_one_step(net: Path) -> None:
    assert api.summary(net, steps=2) == api.summary(net, steps="2")


def test_a_frame_is_not_a_path(net: Path) -> None:
    with pytest.raises(TypeError, match=r"pyprof\.summary\(\) takes the path of a capture, not a"):
        api.summary(pyprof.load(net))  # type: ignore[arg-type]


def test_a_comparison_of_snapshots_takes_no_keys_and_steps(tmp_path: Path) -> None:
    snapshot = built.write(tmp_path / "net.pickle", built.training())
    with pytest.raises(ValueError, match="without by, steps"):
        api.diff(snapshot, snapshot, by="op")
    with pytest.raises(ValueError, match="without by, steps"):
        api.diff(snapshot, snapshot, steps="1:")


@pytest.mark.parametrize("path", [None, 3, [None]])
def test_an_argument_that_is_not_a_path_is_an_error(path: Any) -> None:  # noqa: ANN401 - what must be refused
    for function in (pyprof.load, api.summary, api.memory, api.ranks, api.whatif):
        with pytest.raises(TypeError, match=rf"pyprof\.{function.__name__}\(\) takes the path"):
            function(path)


@pytest.mark.parametrize("function", [pyprof.load, api.summary])
def test_a_second_path_instead_of_a_list_is_an_error(function: Any) -> None:  # noqa: ANN401 - either of two
    with pytest.raises(TypeError, match=r"takes several captures as one list"):
        function("a.sqlite", "b.sqlite")


def test_an_unreadable_file_is_a_pyprof_error(tmp_path: Path) -> None:
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(pyprof.PyprofError, match="no such file"):
        api.summary(missing)
    with pytest.raises(pyprof.PyprofError, match="no such file"):
        api.diff(missing, missing)


def test_dir_lists_the_public_names_and_help_documents_them() -> None:
    assert set(dir(pyprof)) == set(pyprof.__all__)
    text = pydoc.plain(pydoc.render_doc(pyprof))
    assert "summary(path" in text
    assert "importlib" not in text


@pytest.mark.slow
def test_without_torch_all_names_exist_and_raise_when_called() -> None:
    done = python("-c", """if True:
        import sys
        sys.modules["torch"] = None
        import pydoc
        import pyprof
        assert all(hasattr(pyprof, name) for name in dir(pyprof))
        assert "PyTorch" in pydoc.render_doc(pyprof)
        assert not hasattr(pyprof.init, "__wrapped__")
        try:
            pyprof.wrap(object, "f")
        except ImportError as error:
            print(error)
    """)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "pyprof.wrap needs PyTorch: pip install torch\n", "",
    )  # fmt: skip
