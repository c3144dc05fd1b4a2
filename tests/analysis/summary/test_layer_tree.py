"""The tree of modules: totals are those of the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.summary.layer_tree import MAX_DEPTH, layer_path, layer_sums, layer_times
from pyprof.answers.summary_answer import NO_LAYER, LayerTime
from pyprof.arrays import Mask
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records.merging import merge_sums
from tests.analysis.captures import US, Work, capture, layer, table, training


def _times(whole: Table, rows: Mask | None = None) -> tuple[LayerTime, ...]:
    return layer_times(*layer_sums(whole, rows))


def test_a_layer_has_its_self_time_and_its_total() -> None:
    """Rows in a step but in no layer have a node with the step's name."""
    found = _times(table(training(2)))
    assert [(each.path, each.time_ns // US, each.own_ns // US) for each in found] == [
        ((), 244, 0),
        (("net",), 220, 0),
        (("net", "fc1"), 120, 120),
        (("net", "fc2"), 100, 100),
        (("step",), 24, 24),
    ]


@pytest.mark.parametrize(("layers", "expected"), [
    (["net", "net.fc"], ("net", "fc")),
    (["net", "net.layers.0", "net.layers.0.fc"], ("net", "layers", "0", "fc")),
    (["encoder", "attention"], ("encoder", "attention")),
    (["net", "net"], ("net",)),
    (["net", "network.fc"], ("net", "network", "fc")),
    (["net", "attention v1.2"], ("net", "attention v1.2")),
    ([], ()),
])  # fmt: skip
def test_paths_extend_those_around_them(layers: list[str], expected: tuple[str, ...]) -> None:
    """A module's path appears once in the tree; a name that is not a path stays as it is."""
    assert layer_path(layers) == expected


_PATHS = st.sampled_from(["", "a", "a.b", "a.b.c", "a.d", "b", "b.a"])


@pytest.mark.slow
@given(st.lists(st.tuples(_PATHS, st.integers(1, 50)), min_size=1, max_size=12), st.data())
def test_totals_equal_those_of_the_rows(rows: list[tuple[str, int]], data: st.DataObject) -> None:
    begin = 0
    work, ranges = [], []
    for path, length in rows:
        work.append(Work((begin + 5, begin + 5 + length), (begin + 3, begin + 4)))
        ranges += [layer(path, (begin + 1, begin + 100))] if path else []
        begin += 100
    chosen = np.array([data.draw(st.booleans()) for _ in rows])
    root, *others = _times(table(capture(work, ranges=ranges)), chosen)
    assert root.time_ns == sum(length for (_, length), kept in zip(rows, chosen, strict=True)
                               if kept)  # fmt: skip
    assert root.rows == chosen.sum()
    for each in (root, *others):
        size = len(each.path) + 1
        inside = [
            other for other in others
            if len(other.path) == size and other.path[:-1] == each.path
        ]  # fmt: skip
        assert each.time_ns == each.own_ns + sum(other.time_ns for other in inside)


def test_rows_outside_all_layers_have_a_node_of_their_own() -> None:
    found = _times(table(capture([Work((5, 15), (3, 4))])))
    assert [each.path for each in found] == [(), (NO_LAYER,)]


def _captured(*paths: tuple[str, ...]) -> Table:
    ranges, work = [], []
    for place, path in enumerate(paths):
        begin = 1000 * place
        ranges += [layer(name, (begin + n, begin + 900 - n)) for n, name in enumerate(path, 1)]
        work.append(Work((begin + 500, begin + 600), (begin + 450, begin + 460)))
    return table(capture(work, ranges=ranges))


def test_a_layer_has_the_name_that_it_was_given() -> None:
    """A dotted name is one node unless others begin alike; layers are never split."""
    found = _times(_captured(("phase.one", "net", "net.layers.0"), ("v1.2 of it",)))
    assert [each.path for each in found] == [
        (), ("phase.one",), ("phase.one", "net"), ("phase.one", "net", "layers.0"), ("v1.2 of it",)
    ]  # fmt: skip
    several = _times(_captured(("net", "net.layers.0"), ("net", "net.layers.1")))
    assert [each.path[-1] for each in several[1:]] == ["net", "layers", "0", "1"]


def test_names_are_joined_when_all_captures_are_known() -> None:
    """Another rank's layers may share a part of a name."""
    sums = [layer_sums(_captured(("net", f"net.layers.{n}")))[0] for n in range(2)]
    both = layer_times(merge_sums(*sums), None)
    assert [each.path[-1] for each in both[1:]] == ["net", "layers", "0", "1"]
    same = layer_times(merge_sums(sums[0], sums[0]), None)
    assert same[-1].path == ("net", "layers.0")


def test_a_tree_of_modules_is_not_as_deep_as_a_name_has_dots() -> None:
    """Below some level the rest of the name is one node, with all its time."""
    name = ".".join(f"l{level}" for level in range(20_000))
    net = capture([Work((50, 60), (10, 20))], ranges=[layer(name, (1, 30))])
    sums, _ = layer_sums(Table(parse(net)))
    layers = layer_times(merge_sums(sums, sums), None)
    assert max(len(each.path) for each in layers) <= MAX_DEPTH
    assert ".".join(layers[-1].path) == name
    assert (layers[0].time_ns, layers[-1].own_ns, layers[-1].rows) == (20, 20, 2)
