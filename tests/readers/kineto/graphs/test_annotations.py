"""Annotations of graph nodes next to a trace of torch.profiler."""

import gzip
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from pyprof import readers
from pyprof.errors import CaptureError
from pyprof.parse import parse
from pyprof.readers import settings
from pyprof.readers.kineto.graphs import annotations as graph_annotations
from tests.readers.kineto_graphs import Node, Replay, captured, replayed, write

NODES = (Node("my::a", "first"), Node("my::b", "second"))
GRAPH = 3 << 32
STACK = "/home/me/net.py:7:forward\n/home/me/train.py:40:main"


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = parse(readers.read(path)).table().to_pylist()
    return rows


def _replay(folder: Path, graph: int = 3) -> Path:
    return write(folder, replayed([("", [Replay(NODES)])], amd=False, graph=graph), {})


def _zipped(folder: Path, told: dict[int, str]) -> Path:
    path = folder / "graph_annotations.json.gz"
    path.write_bytes(gzip.compress(json.dumps({str(k): v for k, v in told.items()}).encode()))
    return path


def test_a_nodes_stack_is_its_trace(tmp_path: Path) -> None:
    """Outermost first, and of this node alone."""
    path = _replay(tmp_path)
    _zipped(tmp_path, {GRAPH + 1: STACK, (9 << 32) + 2: "/home/me/other.py:1:f"})
    first, second = _rows(path)
    assert first["trace"] == ["/home/me/train.py:40", "/home/me/net.py:7"]
    assert second["trace"] == []


@pytest.mark.parametrize("ids", [(1, 2), (GRAPH + 1, GRAPH + 2)], ids=["low bits", "whole"])
@pytest.mark.parametrize("bare", [False, True])
def test_the_users_marks_are_layers(tmp_path: Path, ids: tuple[int, int], *, bare: bool) -> None:
    """Read from a pickle; ids without a graph number are of the only graph."""
    path = _replay(tmp_path)
    if bare:
        written = path.read_text()
        for place in (1, 2):
            written = written.replace(str(GRAPH + place), str(place))
        path.write_text(written)
    marks = {ids[0]: [{"annotation": "attention"}, {"name": "qkv"}], ids[1]: [{"layer": 3}]}
    (tmp_path / "annotations.pkl").write_bytes(pickle.dumps(marks))
    assert [row["layer"] for row in _rows(path)] == [["attention", "qkv"], ["layer=3"]]


@pytest.mark.parametrize("name", ["0.123.pt.trace.json", "replay.json"])
def test_annotations_are_found_where_torch_writes_them(tmp_path: Path, name: str) -> None:
    """In a folder above the trace, one file per rank; of several, an unknown rank takes none."""
    path = _replay(tmp_path / "rank0").rename(tmp_path / "rank0" / name)
    for rank, mark in enumerate(("mine", "another's")):
        told = {GRAPH + place: [{"str": mark, "stream": 61}] for place in (1, 2)}
        (tmp_path / f"kernel_annotations_rank{rank}_7.pkl").write_bytes(pickle.dumps(told))
    expected = [["mine"], ["mine"]] if name.startswith("0") else [[], []]
    assert [row["layer"] for row in _rows(path)] == expected


def test_a_trace_of_the_capture_takes_precedence(tmp_path: Path) -> None:
    """If it has the op, the line is from the trace, too."""
    path = _replay(tmp_path)
    annotations = _zipped(tmp_path, {GRAPH + 1: STACK})
    (tmp_path / "capture_traces" / "one.json").write_text(
        json.dumps({"traceEvents": captured([NODES])})
    )
    assert [row["op"] for row in _rows(path)] == [["a"], ["b"]]
    with settings.using([str(annotations)]):
        rows = _rows(path)
    assert [row["op"] for row in rows] == [[], []]
    assert rows[0]["trace"]


class _Harmful:
    def __init__(self, place: str) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.place,)


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    path = _replay(tmp_path)
    made = tmp_path / "made"
    (tmp_path / "annotations.pickle").write_bytes(pickle.dumps({1: [_Harmful(str(made))]}))
    records = parse(readers.read(path))
    assert records.rows == len(NODES)
    assert not made.exists()
    assert any("annotations.pickle" in text and "mkdir" in text for text in records.warnings)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\x80\x04", b"\x80\x04]\x94.", b"\x80\x04Vx\n.", b"cos\nsystem\n."),
        *(b"{", b"[]", b"\x1f\x8b"),
    ],
)
def test_an_invalid_annotation_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "annotations.pkl"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=r"annotations\.pkl"):
        graph_annotations.read(path)


def test_pickles_of_other_things_are_left_alone(tmp_path: Path) -> None:
    """A checkpoint next to a trace is not even opened."""
    path = _replay(tmp_path)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps({1: [_Harmful(str(tmp_path / "made"))]}))
    assert not any("model.pkl" in text for text in parse(readers.read(path)).warnings)


def test_invalid_entries_are_dropped(tmp_path: Path) -> None:
    told: object = {"x": "a.py:1:f", 5: None, 6: [3, []], 7: "no frame", 8: "b.py:2:g"}
    path = tmp_path / "annotations.pkl"
    path.write_bytes(pickle.dumps(told))
    assert graph_annotations.read(path) == {8: graph_annotations.Annotation((("b.py:2", "g"),), ())}
