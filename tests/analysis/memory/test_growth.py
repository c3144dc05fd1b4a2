"""Growth from step to step is found, with its line; temporary memory is not reported."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from pyprof.allocations import read, snapshot_device, snapshot_ranges, stacks
from pyprof.analysis.memory.growth import growth
from pyprof.answers.memory_answer import StepGrowth
from tests.allocations import built
from tests.known import known


def _growth(path: Path) -> StepGrowth | None:
    (device,) = read.read(path).devices
    return growth(device.history, *device.steps)


@pytest.mark.parametrize("steps", [4, 7])
def test_a_planted_leak_is_named_with_its_line(tmp_path: Path, steps: int) -> None:
    """Bytes and blocks per step; allocations of the first step are not a leak."""
    found = known(_growth(built.write(tmp_path / "x.pickle", built.training(steps, leak=1000))))
    (leak,) = found.leaks
    assert leak.line == "/home/user/train.py:11"
    assert (leak.bytes_per_step, leak.block_count) == (1000, leak.bytes // 1000)
    assert found.held_bytes[-1] - found.held_bytes[1] == leak.bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "leaks"),
    [
        ([9, 5, 0, 0, 5, 0, 0, 5, 0, 0, 5, 0], True),  # every third step
        ([9, 5, 5, 5, 5, 5, 0, 0, 0, 0, 0, 0], False),  # a cache that fills
        ([9, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0], False),  # two buffers that grow once
        ([9, 5, 5, 5, -5, 5, 5, 5, 5, 5, 5, 5], True),  # something is given back, once
        ([9, 5, -5, 5, -5, 5, -5, 5, -5, 5, -5, 5], False),  # each allocation is freed
    ],
)
def test_a_leak_goes_on(tmp_path: Path, kept: list[int], leaks: bool) -> None:  # noqa: FBT001
    """Not necessarily in every step, but to the last; some of it may be freed."""
    device = built.Device()
    held: list[int] = []
    for step, blocks in enumerate(kept):
        device.range(f"ProfilerStep#{step}", begins=True)
        device.free(device.alloc(512))
        if blocks < 0:
            for _ in range(-blocks):
                device.free(held.pop())
        held += [device.alloc(512, built.user(7)) for _ in range(blocks)]
        device.range(f"ProfilerStep#{step}", begins=False)
    found = known(_growth(built.write(tmp_path / "x.pickle", device)))
    assert bool(found.leaks) == leaks
    if leaks:
        assert found.leaks[0].bytes_per_step == pytest.approx(sum(kept[2:]) * 512 / 10, rel=0.1)


def _noisy(rng: Random, steps: int, leak: int) -> StepGrowth | None:
    """Hold a batch of another size at the end of each step, and `leak` bytes more."""
    device, batch = built.Device(), None
    for step in range(steps):
        device.range(f"ProfilerStep#{step}", begins=True)
        if batch is not None:
            device.free(batch)
        batch = device.alloc(rng.randrange(1_000_000, 2_000_000), built.user(7))
        if leak:
            device.alloc(leak, built.user(7))
        device.range(f"ProfilerStep#{step}", begins=False)
    taken = built.parsed(built.snapshot(device))
    history = snapshot_device.recorded_device(taken, 0, stacks.describe(taken)).history
    marked_by, moments = snapshot_ranges.step_bounds(taken, 0)
    return growth(
        history, marked_by, (np.searchsorted(history.time_ns, moments, "right") - 1).tolist()
    )


@pytest.mark.slow
def test_leak_under_noise_is_a_fit_over_steps() -> None:
    """200 kB a step are found if steps differ by up to 1 MB; noise alone is not a leak."""
    rng = Random(5)  # noqa: S311 - no secret
    found = [_noisy(rng, 40, 200_000) for _ in range(10)]
    assert all(each is not None and len(each.leaks) == 1 for each in found)
    rates = [each.leaks[0].bytes_per_step for each in found if each is not None]
    assert rates == pytest.approx([200_000] * 10, rel=0.2)
    for steps in (5, 10, 40):
        assert not any(each.leaks for _ in range(20) if (each := _noisy(rng, steps, 0)))


def test_a_leak_is_found_if_neighbouring_steps_deviate_somewhat_alike() -> None:
    found = known(_noisy(Random(0), 20, 100_000))  # noqa: S311 - no secret
    assert len(found.leaks) == 1


def test_training_without_a_leak_has_none(tmp_path: Path) -> None:
    found = known(_growth(built.write(tmp_path / "x.pickle", built.training(5))))
    assert found.marked_by == "ranges of steps"
    assert found.leaks == ()
    assert len(set(found.held_bytes[1:])) == 1


@pytest.mark.parametrize("returned", [False, True])
def test_steps_end_with_the_optimizers(tmp_path: Path, *, returned: bool) -> None:
    """Also if the function that trains has returned before the snapshot, which frees its model."""
    device = built.training(6, leak=1000)
    device.annotations.clear()
    for block in [*device.segment()["blocks"]] if returned else ():
        if block["state"] == "active_allocated":
            device.free(block["address"], built.user(30))
    found = known(_growth(built.write(tmp_path / "x.pickle", device)))
    assert found.marked_by == "the optimizer's stacks"
    assert found.held_bytes[-1] > found.held_bytes[1]
    assert [leak.line for leak in found.leaks] == ["/home/user/train.py:11"]


def test_steps_of_an_optimizer_that_allocates_nothing_end_with_zero_grad(tmp_path: Path) -> None:
    """As SGD does, and every fused optimizer after its first step."""
    device = built.Device()
    for _ in range(6):
        saved = device.alloc(5000, built.CALL, built.user(10, "forward"))
        device.alloc(1000, built.user(11))
        gradient = device.alloc(3000, built.ACCUMULATE, built.ENGINE)
        device.free(saved, built.NODE, built.ENGINE)
        device.free(gradient, built.ZERO_GRAD, built.user(21))
    found = known(_growth(built.write(tmp_path / "x.pickle", device)))
    assert found.marked_by == "zero_grad's stacks"
    assert found.held_bytes == (1000, 2000, 3000, 4000, 5000, 6000)
    assert [leak.line for leak in found.leaks] == ["/home/user/train.py:11"]


def test_too_few_steps_show_no_leak(tmp_path: Path) -> None:
    """Three ends leave one comparison besides the first step."""
    assert _growth(built.write(tmp_path / "x.pickle", built.training(2, leak=9))) is None
