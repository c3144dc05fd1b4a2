"""Files besides captures that a user names."""

from pathlib import Path

import pytest

from pyprof.readers import settings


def _fail() -> None:
    assert settings.graph_captures() == ("a", "b")
    assert settings.counters() == "c"
    raise ValueError("stop")


def test_settings_end_with_their_block_even_after_an_error() -> None:
    with pytest.raises(ValueError, match="stop"), settings.using(["a", "b"], "c"):
        _fail()
    assert settings.graph_captures() == ()
    assert settings.counters() is None


def test_one_path_is_a_list_of_one(tmp_path: Path) -> None:
    for given in (tmp_path / "traces", [tmp_path / "traces"], str(tmp_path / "traces")):
        with settings.using_files(given):
            assert settings.graph_captures() == (str(tmp_path / "traces"),)


def _with_captures(number: int) -> tuple[int, tuple[str, ...]]:
    return number, settings.graph_captures()


def test_a_carried_function_has_the_settings_of_where_it_was_made() -> None:
    with settings.using(["a"]):
        carried = settings.Carried(_with_captures)
    assert carried(3) == (3, ("a",))


def test_graphs_of_a_trace_are_captured_in_a_folder_next_to_it() -> None:
    ours = settings.own_captures_path(Path("run/trace.pt.json.gz"))
    assert ours == Path("run/capture_traces/trace.graphs.pt.json.gz")
