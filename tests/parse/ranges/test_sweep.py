"""Ranges in each other, of any number and depth: what they say is found without going through all.

Brute force, one range around another, is the truth.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import marker
from pyprof.arrays import MISSING
from pyprof.marker import Call, Kind
from pyprof.parse import assemble, parse_file
from pyprof.parse.ranges import range_stacks
from pyprof.parse.ranges.texts import Texts
from pyprof.readers.kineto import nest
from tests.builders import Range, Work, nsys_db
from tests.commands import run

TEXTS = (
    "layer:a",
    "layer:b",
    marker.encode_trace(["a.py:1"]),
    marker.encode_trace(["a.py:1", "b.py:2"]),
    marker.encode_module("LSTM", "10, 20"),
    marker.encode_op(Call("torch", "mm")),
    marker.encode_op(Call("torch.optim", "step")),
    "aten::mm, seq = 1",
    "MmBackward0, seq = 1",
    "torch.utils.checkpoint.CheckpointFunctionBackward, seq = 3",
    "Optimizer.step#SGD.step",
    "attention",
    "mlp (backward)",
    "iteration 3",
)


@st.composite
def _trees(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Draw paths as (parent, template), parents first."""
    count = draw(st.integers(1, 25))
    return [
        (draw(st.integers(MISSING, place - 1)), draw(st.integers(0, len(TEXTS) - 1)))
        for place in range(count)
    ]


def _expected(texts: list[str], most: int) -> range_stacks.Path:
    """Say what texts, outermost first, say: each looked at on its own."""
    kinds = [marker.classify(text) for text in texts]
    of = {kind: [t for t, k in zip(texts, kinds, strict=True) if k == kind] for kind in Kind}
    calls = [(t, marker.decode_op(t)) for t in of[Kind.OP]]
    seqs = [t for t in of[Kind.SEQ] if "Checkpoint" not in t]
    nodes = [place for place, text in enumerate(texts) if "Mm" in text or "Checkpoint" in text]
    traces = [marker.decode_trace(t) for t in of[Kind.TRACE]]
    caller = _expected(texts[: nodes[0]], 1000) if nodes else None
    inside = kinds[nodes[0] :] if nodes else []
    named = tuple(
        marker.layer_name(t) if k == Kind.LAYER else marker.range_name(t)
        for t, k in zip(texts, kinds, strict=True)
        if k in (Kind.LAYER, Kind.USER)
    )
    layer = named or ("iteration",) * bool(of[Kind.STEP])
    begin = _begin_again(texts, kinds)
    inner = texts if begin is None else texts[begin + 1 :]
    again = begin is not None and any(t in seqs or t in dict(calls) for t in inner)
    inner = inner if again else texts
    says = "bprop" if any("(backward)" in text for text in texts) else ""
    trace = traces[-1] if traces else ()
    return range_stacks.Path(
        layer=layer[-most:],
        trace=trace[-most:],
        modules=tuple(of[Kind.MODULE])[-most:],
        markers=tuple(marker.statement(t) for t, _ in calls)[-most:],
        ops=tuple((c.mod, c.op) for c in map(marker.decode_op, inner) if c)[-most:],
        seqs=tuple(map(marker.statement, seqs))[-most:],
        backward=bool(nodes),
        optimizer=bool(of[Kind.OPTIMIZER]) or any(c.op == "step" for _, c in calls if c),
        says=says,
        naming=tuple(marker.statement(text) for text in inner if text in seqs)[-most:],
        again=again,
        of_caller=(not {Kind.LAYER, Kind.USER} & {*inside}, trace == caller.trace)
        if caller
        else (False, False),
    )


def _begin_again(texts: list[str], kinds: list[Kind]) -> int | None:
    """Find the innermost checkpoint, or module within a node, in which no other node is."""
    begin, backward = None, False
    for n, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
        if "MmBackward0" in text:
            begin, backward = None, True
        elif "CheckpointFunction" in text:
            begin, backward = n, True
        elif kind == Kind.LAYER and backward and begin is None:
            begin = n
    return begin


@given(_trees(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_some_paths_are_put_into_words(tree: list[tuple[int, int]], most: int, rng: object) -> None:
    """Each as the texts on the way to it say, cut to its innermost ones."""
    found = range_stacks.Paths(
        np.arange(len(tree)),
        np.array([parent for parent, _ in tree]),
        np.array([template for _, template in tree]),
        np.zeros(len(tree), np.int8),
    )
    kinds = np.array([marker.classify(text) for text in TEXTS], np.int8)
    texts = Texts(
        np.zeros(0, np.int32), np.zeros(0, np.int64), [*map(marker.statement, TEXTS)], kinds
    )
    expected = []
    wanted = sorted(rng.sample(range(len(tree)), rng.randint(0, len(tree))))  # type: ignore[attr-defined]
    for place in wanted:
        around, at = [], place
        while at != MISSING:
            around.append(TEXTS[tree[at][1]])
            at = tree[at][0]
        expected.append(_expected(around[::-1], most))
    assert found.describe(texts, np.array(wanted, np.int64), most) == expected
    backward = found.backward(texts)
    assert [entry.backward for entry in expected] == backward[wanted].tolist()


@given(_trees(), st.lists(st.booleans(), min_size=25, max_size=25))
def test_ops_around_ops(tree: list[tuple[int, int]], flags: list[bool]) -> None:
    """The nearest real op around, and whether any that works is, by jumps and one by one."""
    parent = np.array([above for above, _ in tree])
    chosen = np.array(flags[: len(tree)])

    def around(place: int) -> list[int]:
        found = []
        while (place := int(parent[place])) != MISSING:
            found.append(place)
        return found

    nearest = [next((p for p in around(n) if chosen[p]), MISSING) for n in range(len(tree))]
    assert nest.nearest(parent, chosen).tolist() == nearest
    assert nest.within(chosen, parent).tolist() == [
        any(chosen[p] for p in around(n)) for n in range(len(tree))
    ]


def _nested(path: Path, depth: int) -> Path:
    ranges = [Range(f"layer:l{n}", (n, 10 * depth - n)) for n in range(depth)]
    call = (5 * depth, 5 * depth + 1)
    return nsys_db(path, [Work(call=call, at=(20 * depth, 20 * depth + 7))], ranges)


def test_a_kernel_in_many_layers_has_them_all(tmp_path: Path) -> None:
    """As long as all rows together do not list too many."""
    (layers,) = parse_file(_nested(tmp_path / "net.sqlite", 3000)).arrow("layer").to_pylist()
    assert layers == [f"l{n}" for n in range(3000)]


@pytest.mark.parametrize(
    "command", [["summary"], ["summary", "--by", "layer"], ["prof", "--by", "layer"], ["lines"]]
)
def test_reports_take_any_depth(command: list[str], tmp_path: Path) -> None:
    """Nothing calls itself once a layer."""
    done = run(*command, _nested(tmp_path / "net.sqlite", 3000))
    assert done.code == 0
    assert max(map(len, done.stdout.splitlines())) < 40_000


def test_the_page_takes_any_depth(tmp_path: Path) -> None:
    """The tree of modules on it, too."""
    done = run("report", _nested(tmp_path / "net.sqlite", 2000), "-o", tmp_path / "net.html")
    assert done.code == 0


def test_only_the_innermost_are_kept_of_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The op is there, and a warning says what is not."""
    monkeypatch.setattr(assemble, "_MAX_NAMES", 5)
    monkeypatch.setattr(assemble, "_MIN_NAMES", 2)
    texts = ["layer:a", "layer:b", "layer:c", "aten::mm, seq = 4"]
    ranges = [Range(text, (n, 100 - n)) for n, text in enumerate(texts)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", [Work(call=(50, 51))] * 2, ranges))
    assert found.arrow("layer").to_pylist() == [["b", "c"]] * 2
    assert found.arrow("op").to_pylist() == [["mm"]] * 2
    assert "2 rows are nested in more than 2 ranges" in found.warnings[-1]


def test_only_the_last_are_kept_of_too_many_that_need_not_nest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of start/end layers, too."""
    monkeypatch.setattr(assemble, "_MAX_NAMES", 2)
    monkeypatch.setattr(assemble, "_MIN_NAMES", 2)
    ranges = [Range(f"layer:l{n}", (n, 100 + n), style=60, end_tid=11) for n in range(4)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", [Work(call=(50, 51))], ranges))
    assert found.arrow("layer").to_pylist() == [["l2", "l3"]]
    assert "1 rows are nested in more than 2 ranges" in found.warnings[-1]


@pytest.mark.parametrize("form", ["aten::op{}, seq = {}", "layer:op{}"])
def test_ranges_that_never_end_hold_nothing(form: str, tmp_path: Path) -> None:
    """More than can be in each other are not: nothing is tied to them, and that is said."""
    count = 3000
    work = [Work(call=(10 * n + 2, 10 * n + 4), at=(10 * n + 5, 10 * n + 9)) for n in range(count)]
    ranges = [Range(form.format(n, n), (10 * n, None)) for n in range(count)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", work, ranges))
    name = "op" if "seq" in form else "layer"
    assert not any(found.arrow(name).to_pylist())
    assert any("have no end" in text for text in found.warnings)


def test_ranges_that_never_end_may_be_in_each_other(tmp_path: Path) -> None:
    """A capture that stops in the middle of a step: some are open, and all are believed."""
    ranges = [Range(f"layer:l{n}", (n, None)) for n in range(30)]
    found = parse_file(nsys_db(tmp_path / "net.sqlite", [Work(call=(50, 51))], ranges))
    assert found.arrow("layer").to_pylist() == [[f"l{n}" for n in range(30)]]


def test_lists_in_each_other_are_no_marker() -> None:
    """However they are written, nothing walks down them."""
    for depth in (70, 900, 50_000):
        deep = "[" * depth + "]" * depth
        assert marker.decode_seq(f"aten::mm, sizes = {deep}").call == Call(
            "aten", "mm", whole=False
        )
        for quote in "'\"":
            text = f"{{'mod': 'torch', 'op': 'cat', 'args': {deep}}}".replace("'", quote)
            assert marker.decode_op(text) == Call("torch", "cat", whole=False)
        assert marker.decode_trace(f"{{'traceMarker': {deep}}}") == ()


@pytest.mark.parametrize("size", [2**63, -(2**63) - 1, 10**40])
def test_sizes_beyond_an_int64_are_none(size: int, tmp_path: Path) -> None:
    """They fit no column, and no tensor has them; the op is there without."""
    texts = (
        f"aten::mm, seq = 4, op_id = 7, sizes = [[{size}, 6], [6, 2]]",
        (
            f"{{'mod': 'torch', 'op': 'mm', 'args': [{{'name': '', 'type': 'tensor', "
            f"'shape': ({size}, 6), 'dtype': 'float16', 'stride': ({size}, 1)}}]}}"
        ),
    )
    for text in texts:
        path = nsys_db(tmp_path / "net.sqlite", [Work(call=(5, 6))], [Range(text, (1, 9))])
        done = run("parse", path)
        assert done.code == 0
        assert '"op": ["mm"]' in done.stdout
        assert run("prof", path).code == 0
