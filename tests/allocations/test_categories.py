"""Categories of blocks follow from evidence, and are unknown without."""

from pathlib import Path

import numpy as np
import pytest

from pyprof.allocations import read
from pyprof.allocations.categories import freed_in
from pyprof.arrays import MISSING
from tests.allocations import built


def _said(path: Path) -> dict[int, tuple[str | None, str | None, str | None]]:
    """Return category, evidence and direction of the first block of each size."""
    (device,) = read.read(path).devices
    history = device.history
    said: dict[int, tuple[str | None, str | None, str | None]] = {}
    for row, size in enumerate(history.blocks.bytes.tolist()):
        labels = (history.labels[name] for name in ("category", "evidence", "direction"))
        category, evidence, direction = (each.at([row])[0] for each in labels)  # type: ignore[arg-type]
        said.setdefault(size, (category, evidence, direction))
    return said


def test_each_category_of_training_is_found(tmp_path: Path) -> None:
    device = built.training()
    device.alloc(12345, built.WORKSPACE, built.CALL, built.user(10))
    device.alloc(54321, built.user(30))
    said = _said(built.write(tmp_path / "x.pickle", device))
    expected = {
        8 * built.MIB: ("activations", "forward"),
        2 * built.MIB: ("temporaries", "forward"),
        1 * built.MIB: ("temporaries", "backward"),
        3 * built.MIB: ("temporaries", "optimizer"),
        12345: ("workspace", "forward"),
        54321: (None, None),
    }
    assert {size: said[size][::2] for size in expected} == expected


@pytest.mark.parametrize(
    ("stack", "category"),
    [
        ((built.APPLY, built.user(3)), "parameters"),
        ((built.ACCUMULATE, built.ENGINE), "gradients"),
        ((built.INIT_GROUP, built.STEP, built.user(20)), "optimizer state"),
        ((built.user(3, "__init__"),), None),
        ((), None),
    ],
)
def test_categories_of_blocks_never_freed_follow_from_their_allocation(
    tmp_path: Path, stack: tuple[built.Frame, ...], category: str | None
) -> None:
    """Parameters, gradients and the optimizer's state."""
    device = built.Device()
    device.alloc(777, *stack)
    assert _said(built.write(tmp_path / "x.pickle", device))[777][0] == category


@pytest.mark.parametrize(
    ("event_directions", "expected"),
    [([0, MISSING, 0], 0), ([0, MISSING, 2], MISSING), ([MISSING, MISSING, 0], MISSING)],
)
def test_a_free_without_a_stack_is_of_the_direction_around_it(
    event_directions: list[int], expected: int
) -> None:
    """If the events before and after it agree."""
    found = freed_in(np.array([0]), np.array([1]), np.array(event_directions))
    assert found.tolist() == [expected]


def test_gradients_that_were_taken_over(tmp_path: Path) -> None:
    """Autograd keeps what the backward pass made: zero_grad frees it, or it lives on."""
    device = built.Device()
    for size in (100, 200):
        gradient = device.alloc(size, built.NODE, built.ENGINE)
        device.alloc(1, built.CALL, built.user(1))
        if size == 100:
            device.free(gradient, built.ZERO_GRAD, built.user(21))
    device.alloc(1, built.CALL, built.user(1))
    said = _said(built.write(tmp_path / "x.pickle", device))
    assert said[100][:2] == ("gradients", "allocated in the backward pass, freed by zero_grad")
    assert said[200][0] == "gradients"
    assert str(said[200][1]).startswith("inferred: ")


def test_state_of_an_optimizer_written_by_hand(tmp_path: Path) -> None:
    """Allocated in its step, without a setup; kept to the end or until replaced.

    What is freed before the step ends is not a state, with or without a stack of the free.
    """
    step = (("step", "/home/user/optimizer.py", 9), built.user(20))
    device = built.Device()
    kept = None
    for _ in range(2):
        device.alloc(1, built.CALL, built.user(1))
        device.alloc(2, built.NODE, built.ENGINE)
        replaced, scratch = device.alloc(200, *step), device.alloc(300, *step)
        device.free(scratch)
        if kept is not None:
            device.free(kept, *step)
        kept = replaced
    device.alloc(100, *step)
    said = _said(built.write(tmp_path / "x.pickle", device))
    assert [said[size][::2] for size in (100, 200, 300)] == [
        ("optimizer state", "optimizer"),
        ("optimizer state", "optimizer"),
        ("temporaries", "optimizer"),
    ]


_BEFORE = "live before the history began"


def test_blocks_older_than_the_recording_are_a_category_of_their_own(tmp_path: Path) -> None:
    device = built.Device()
    device.alloc(100)
    device.alloc(200)
    device.forget(1)
    said = _said(built.write(tmp_path / "x.pickle", device))
    assert said[100] == (None, _BEFORE, None)


@pytest.mark.parametrize(
    ("freed_by", "said"),
    [
        ((built.ZERO_GRAD,), ("gradients", f"{_BEFORE}, freed by zero_grad")),
        ((built.NODE, built.ENGINE), ("activations", f"{_BEFORE}, freed by the backward pass")),
    ],
)
def test_evidence_of_blocks_older_than_the_history_does_not_say_where_they_were_allocated(
    tmp_path: Path, freed_by: tuple[built.Frame, ...], said: tuple[str, str]
) -> None:
    """Only the stack of the free is known."""
    device = built.Device()
    block = device.alloc(100, built.NODE, built.ENGINE)
    device.free(block, *freed_by)
    device.forget(1)
    assert _said(built.write(tmp_path / "x.pickle", device))[100][:2] == said


def _step(device: built.Device, frees: bool, cpp: bool) -> None:  # noqa: FBT001
    """Train a step: saved 1000, scratch 2000, output 3000; backward 4000, gradient 5000."""

    def stack(*frames: built.Frame) -> tuple[built.Frame, ...]:
        return frames if frees else ()

    engine = (built.NODE, built.ENGINE) if cpp else ()
    saved = device.alloc(1000, built.CALL, built.user(10))
    scratch = device.alloc(2000, built.CALL, built.user(11))
    device.free(scratch, *stack(built.CALL, built.user(11)))
    device.alloc(1, built.CALL, built.user(12))
    output = device.alloc(3000, built.CALL, built.user(13))
    work = device.alloc(4000, *engine)
    gradient = device.alloc(5000, *engine)
    for block in (saved, work):
        device.free(block, *(engine if frees else ()))
    device.alloc(2, *engine)
    update = device.alloc(6000, built.STEP, built.user(20))
    device.free(update, *stack(built.STEP, built.user(20)))
    device.alloc(3, built.STEP, built.user(20))
    device.free(gradient, *stack(built.user(21)))
    device.free(output, *stack(built.user(22)))


@pytest.mark.parametrize("frees", [True, False], ids=["stacks of frees", "none of frees"])
@pytest.mark.parametrize("cpp", [True, False], ids=["C++ frames", "Python frames alone"])
def test_the_free_separates_activations_from_temporaries(
    tmp_path: Path, *, frees: bool, cpp: bool
) -> None:
    """Autograd's threads have no Python frames; a recording may have no stacks of frees at all."""
    device = built.Device()
    for _ in range(2):
        _step(device, frees, cpp)
    said = _said(built.write(tmp_path / "x.pickle", device))
    assert [said[size][0] for size in (1000, 2000, 4000, 5000, 6000)] == [
        "activations", "temporaries", "temporaries", "gradients", "temporaries"
    ]  # fmt: skip
    assert said[4000][2] == "backward"


def test_outputs_freed_by_the_caller_are_not_temporaries_of_the_forward_pass(
    tmp_path: Path,
) -> None:
    """Without a backward pass: a loop that keeps its model's output until the next call."""
    device = built.Device()
    for _ in range(3):
        scratch = device.alloc(100, built.CALL, built.user(10))
        output = device.alloc(200, built.CALL, built.user(11))
        device.free(scratch, built.CALL, built.user(11))
        device.free(output, built.user(30))
    said = _said(built.write(tmp_path / "x.pickle", device))
    assert said[100][:2] == ("temporaries", "allocated and freed in the forward pass")
    after = "inferred: allocated in the forward pass, freed after it"
    assert said[200][:2] == ("activations", after)


def test_a_free_by_a_hook_in_the_backward_pass_is_in_it(tmp_path: Path) -> None:
    """A hook's stack has Python frames, none of which is backward."""
    device = built.Device()
    work = device.alloc(100, built.NODE, built.ENGINE)
    device.alloc(1, built.NODE, built.ENGINE)
    device.free(work, built.user(40, "hook"))
    device.alloc(1, built.NODE, built.ENGINE)
    assert _said(built.write(tmp_path / "x.pickle", device))[100][0] == "temporaries"


def test_free_that_nothing_attributes_leaves_the_category_unknown(tmp_path: Path) -> None:
    """Without a stack, and with no event after it: neither temporary nor activation."""
    device = built.Device()
    blocks = [device.alloc(size, built.CALL, built.user(10)) for size in (100, 200)]
    device.free(blocks[0])
    device.alloc(1, built.CALL, built.user(10))
    device.free(blocks[1])
    said = _said(built.write(tmp_path / "x.pickle", device))
    assert said[100][0] == "temporaries"
    assert said[200][:2] == (None, "allocated in the forward pass; where it was freed is unknown")


def test_copies_of_weights_by_autocast(tmp_path: Path) -> None:
    """Found by what frees them at its end, or by size; other casts are not among them."""
    device = built.Device()
    for size in (1000, 3000):
        device.alloc(size, built.APPLY, built.user(3))
    stack = (built.CACHED_CAST, built.CALL, built.user(10))
    saved = device.alloc(500, *stack)
    kept, cast = device.alloc(400, *stack), device.alloc(200, *stack)
    passing = device.alloc(1500, *stack)
    device.free(passing, built.CALL, built.user(10))
    device.free(kept, built.CLEAR_CACHE, built.AUTOCAST_EXIT, built.user(11))
    for block in (saved, cast):
        device.free(block, built.NODE, built.ENGINE)
    said = _said(built.write(tmp_path / "x.pickle", device))
    assert said[400][:2] == ("autocast copies", "copied by autocast, kept until its end")
    half = "inferred: copied by autocast, half as large as a parameter"
    assert said[500][:2] == ("autocast copies", half)
    assert (said[200][0], said[1500][0]) == ("activations", "temporaries")
