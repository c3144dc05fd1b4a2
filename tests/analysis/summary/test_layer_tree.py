"""The tree of modules: totals are those of the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.summary.layer_tree import NO_LAYER, Node, merge_trees, named, steps, tree
from tests.analysis.captures import US, Work, capture, layer, table, training


def _names(depth_first: object) -> list[tuple[int, str, int, int]]:
    return [(level, node.name, node.total_ns // US, node.self_ns // US)
            for level, node in depth_first]  # type: ignore[attr-defined]  # fmt: skip


def test_a_node_has_its_own_time_and_that_of_its_children() -> None:
    """Rows that are in a step and in no layer have a node of the step's name."""
    assert _names(tree(table(training(2))).walk()) == [
        (0, "", 244, 0),
        (1, "net", 220, 0),
        (2, "fc1", 120, 120),
        (2, "fc2", 100, 100),
        (1, "step", 24, 24),
    ]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (["net", "net.fc"], ("net", "fc")),
        (["net", "net.layers.0", "net.layers.0.fc"], ("net", "layers", "0", "fc")),
        (["encoder", "attention"], ("encoder", "attention")),
        (["net", "net"], ("net",)),
        (["net", "network.fc"], ("net", "network", "fc")),
        (["net", "attention v1.2"], ("net", "attention v1.2")),
        ([], ()),
    ],
)
def test_paths_extend_those_around_them(layers: list[str], expected: tuple[str, ...]) -> None:
    """A module's path is added to the tree once, a name that is no path as it is."""
    assert steps(layers) == expected


_PATHS = st.sampled_from(["", "a", "a.b", "a.b.c", "a.d", "b", "b.a"])


@given(st.lists(st.tuples(_PATHS, st.integers(1, 50)), min_size=1, max_size=12), st.data())
def test_totals_equal_those_of_the_rows(rows: list[tuple[str, int]], data: st.DataObject) -> None:
    """The root has all chosen rows' time, each node its own and its children's."""
    begin = 0
    work, ranges = [], []
    for path, length in rows:
        work.append(Work((begin + 5, begin + 5 + length), (begin + 3, begin + 4)))
        ranges += [layer(path, (begin + 1, begin + 100))] if path else []
        begin += 100
    chosen = np.array([data.draw(st.booleans()) for _ in rows])
    root = tree(table(capture(work, ranges=ranges)), chosen)
    assert root.total_ns == sum(length for (_, length), kept in zip(rows, chosen, strict=True)
                                if kept)  # fmt: skip
    assert root.rows == chosen.sum()
    for _, node in root.walk():
        assert node.total_ns == node.self_ns + sum(child.total_ns for child in node.children)
        assert node.rows == node.self_rows + sum(child.rows for child in node.children)


def test_rows_outside_all_layers_have_a_node_of_their_own() -> None:
    root = tree(table(capture([Work((5, 15), (3, 4))])))
    assert [node.name for _, node in root.walk()] == ["", NO_LAYER]


def _layers(*paths: tuple[str, ...]) -> Node:
    ranges, work = [], []
    for place, path in enumerate(paths):
        begin = 1000 * place
        ranges += [layer(name, (begin + n, begin + 900 - n)) for n, name in enumerate(path, 1)]
        work.append(Work((begin + 500, begin + 600), (begin + 450, begin + 460)))
    return tree(table(capture(work, ranges=ranges)))


def test_a_layer_has_the_name_that_it_was_given() -> None:
    """A dotted name is one node where nothing else begins like it; what is a layer stays one."""
    found = named(_layers(("phase.one", "net", "net.layers.0"), ("v1.2 of it",)))
    assert [(level, node.name) for level, node in found.walk()] == [
        (0, ""), (1, "phase.one"), (2, "net"), (3, "layers.0"), (1, "v1.2 of it"),
    ]  # fmt: skip
    several = named(_layers(("net", "net.layers.0"), ("net", "net.layers.1")))
    assert [node.name for _, node in several.walk()] == ["", "net", "layers", "0", "1"]


def test_names_are_joined_when_all_captures_are_known() -> None:
    """Another rank's layers may hang below the same part of a name."""
    a, b = _layers(("net", "net.layers.0")), _layers(("net", "net.layers.1"))
    assert [node.name for _, node in named(merge_trees(a, b)).walk()] == [
        "",
        "net",
        "layers",
        "0",
        "1",
    ]
    assert named(merge_trees(a, a)).children[0].children[0].name == "layers.0"
