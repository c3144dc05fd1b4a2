"""Unknown costs on the page, with their remedies."""

from pyprof.answers.parts import KnownCost, UnknownCost
from pyprof.render.page.parts import unknown


def test_an_unknown_cost_is_explained_with_its_remedy() -> None:
    """Reasons by time; the rest together."""
    reasons = [UnknownCost("shapes not recorded", 500, 3)]
    reasons += [UnknownCost(f"unknown op f{n}", n, 1) for n in range(19, -1, -1)]
    table = unknown.reasons(KnownCost("GPU", 1000, 0.5, None, tuple(reasons)))
    assert table[0] == (
        "shapes not recorded", "500 ns", "50.0", "3",
        "capture with pyprof capture, or with record_shapes=True",
    )  # fmt: skip
    assert table[1][0] == "unknown op f19"
    assert "docs/instrument.md" in table[1][4]
    assert len(table) == 13
    assert table[-1][:4] == ("9 other reasons", "36 ns", "3.6", "9")


def test_only_a_pytorch_program_is_told_to_instrument_it() -> None:
    """`pyprof.init()` would do nothing for a program in CUDA C++."""
    known = KnownCost("GPU", 1000, 0.5, None, (UnknownCost("no marker", 500, 3),))
    ((*_, remedy),) = unknown.reasons(known, of_torch=False)
    assert remedy.startswith("in a PyTorch program: begin the capture earlier, call pyprof.init()")
