"""Formulas of `region_pooling`, by their worked examples and the kernels' arithmetic."""

from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque, Value
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of
from tests.ops.counted import Counted, Operations, interpolated, weights

test_formulas_keep_the_contract = contract_of("libraries.region_pooling")

X, ROIS, OUT = f32(2, 4, 6, 6), f32(3, 5), f32(3, 4, 2, 5)
BACKWARD = (OUT, ROIS, 1.0, 2, 5, 2, 4, 6, 6)


def _places(ratio: int) -> list[tuple[float, float]]:
    return [((y + 0.5) / ratio, (x + 0.5) / ratio) for y in range(ratio) for x in range(ratio)]


@pytest.mark.parametrize("ratio", [1, 2, 3])
def test_roi_align_counts_the_arithmetic_of_each_bin(ratio: int) -> None:
    """A bin's mean over an image of ones is 1."""
    done = Operations()
    first, *others = (interpolated((Counted(1, done),) * 4, y, x) for y, x in _places(ratio))
    for other in others:
        first += other
    assert (first / ratio**2).value == pytest.approx(1)
    cost = ops.cost(Call("torchvision", "roi_align", (X, ROIS, 1.0, 2, 5, ratio, True)))
    assert cost.flops == OUT.numel * done.count


@pytest.mark.parametrize("ratio", [1, 2, 3])
def test_roi_align_backward_counts_the_arithmetic_of_each_bin(ratio: int) -> None:
    """All that a bin adds to the image's gradient is its own gradient."""
    done = Operations()
    gradient, image = Counted(1, done), Counted(0, done)
    for y, x in _places(ratio):
        for weight in weights(y, x):
            image += gradient * weight / ratio**2
    assert image.value == pytest.approx(1)
    cost = ops.cost(Call("torchvision", "_roi_align_backward", (*BACKWARD, ratio, True)))
    assert cost.flops == OUT.numel * done.count


@pytest.mark.parametrize("ratio", [0, -1])
def test_without_a_sampling_ratio_flops_depend_on_the_boxes(ratio: int) -> None:
    for name, args in [("roi_align", (X, ROIS, 1.0, 2, 5)), ("_roi_align_backward", BACKWARD)]:
        cost = ops.cost(Call("torchvision", name, (*args, ratio, True)))
        assert cost.flops is None
        assert cost.bytes is not None
        assert "sampling_ratio" in cost.reason


def test_few_boxes_read_no_more_of_a_large_image_than_the_neighbours_of_their_samples() -> None:
    call = Call("torchvision", "roi_align", (f32(1, 4, 500, 500), ROIS, 1.0, 2, 5, 2, True))
    assert ops.cost(call).bytes == 4 * (4 * 4 * OUT.numel + ROIS.numel + OUT.numel)


def test_sizes_that_were_not_recorded_leave_the_cost_unknown() -> None:
    """Texts of emit_nvtx have no numbers."""
    hidden: tuple[Value, ...] = (Opaque(""),) * 5
    cost = ops.cost(replace(Call("torchvision", "roi_align"), args=(X, ROIS, *hidden)))
    assert (cost.flops, cost.bytes) == (None, None)
