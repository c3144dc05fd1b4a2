"""Time on another GPU, by the roofs and the measured shares of them."""

import numpy as np
import pytest

from pyprof.analysis.whatif import other_gpu
from pyprof.analysis.whatif.kernels import Prediction, unchanged
from pyprof.analysis.whatif.other_gpu import Board, board, outcomes_of, time_ratio
from pyprof.analysis.whatif.precision import predict_tf32
from pyprof.gpu.peaks.efficiency import efficiency
from tests.analysis.captures import SGEMM_A100, US, copy
from tests.analysis.test_attention_calls import attention, story
from tests.analysis.whatif.test_fusion import chain, context
from tests.known import known


def _board(name: str) -> Board:
    found = board(name)
    assert isinstance(found, Board), found
    return found


def _share(card: str, family: str) -> float:
    return known(efficiency(card, family, "float32"))


def test_kernels_that_move_bytes_follow_the_bandwidth() -> None:
    """An A100 moves 1555 GB/s, an H100 3350, each at its measured share."""
    given = other_gpu.predict(unchanged(context(*chain(3))), "H100")
    assert isinstance(given, Prediction)
    shares = _share("A100 PCIe 80GB", "pointwise") / _share("H100 SXM", "pointwise")
    span = given.kernels.span
    assert span.expected / span.now == pytest.approx(1555 / 3350 * shares, rel=1e-3)
    assert span.low < span.expected < span.high
    assert "NVIDIA A100-SXM4-40GB reaches the shares of A100 PCIe 80GB" in given.assumption


def test_products_follow_the_peak_flops() -> None:
    """14.1 and 9.3 TFLOP/s, for a large product whose bytes do not matter."""
    ratio = time_ratio("gemm", 1e15, 1e6, _board("V100 PCIe"), _board("P100 PCIe"))
    shares = _share("V100 PCIe", "gemm") / _share("P100 PCIe", "gemm")
    assert float(ratio) == pytest.approx(14.1 / 9.3 * shares)


def test_both_directions_cancel() -> None:
    here, there = _board("A100 PCIe 80GB"), _board("L4")
    flops, moved = np.array([1e9, 1e12, 0.0]), np.array([1e9, 1e6, 1e6])
    forth, back = (time_ratio("bmm", flops, moved, *way) for way in ((here, there), (there, here)))
    assert forth * back == pytest.approx(np.ones(3))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("MI300X", "another vendor"),
        ("B200", "not measured"),
        ("A100", "A100 40GB or A100 PCIe 80GB or A100 SXM 80GB"),
        ("H1000", "no GPU H1000"),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "is a part of A100 40GB"),
        ("A100-SXM4-40GB", "it ran on A100 40GB"),  # nothing changes, so no interval holds
    ],
)
def test_other_targets_are_refused(name: str, why: str) -> None:
    given = other_gpu.predict(unchanged(context(*chain(3))), name)
    assert isinstance(given, str)
    assert why in given


def test_time_in_other_types_is_refused() -> None:
    """Only float32 was measured: in bfloat16 less than 80 % of the time is known."""
    given = other_gpu.predict(unchanged(story(*attention(64, 1024, 1024))), "H100")
    assert isinstance(given, str)
    assert "of the time" in given


def test_products_changed_to_tf32_are_refused() -> None:
    """The other GPU may have no TF32, and none was measured in it."""
    case = story((SGEMM_A100, "matmul", ((4096, 4096), (4096, 4096))), dtype="float32")
    changed = predict_tf32(unchanged(case))
    assert isinstance(changed, Prediction)
    assert other_gpu.predict(changed.kernels, "T4") == "efficiencies were measured in float32 only"


def test_a_copy_from_the_host_stays() -> None:
    """The link to the host is not the GPU's."""
    work, ranges = chain(3)
    end = max(each.at[1] for each in work)
    moved = copy((end + US, end + 9 * US), (end, end + 1))
    given = other_gpu.predict(unchanged(context([*work, moved], ranges)), "H100")
    assert isinstance(given, Prediction)
    assert given.rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("here", "there", "key"),
    [
        ("V100 PCIe", "H100 SXM", other_gpu.OPTION),
        ("V100 PCIe", "T4", other_gpu.LIMITED),
        ("NVIDIA A100-SXM4-40GB", "T4", other_gpu.LIMITED),
        ("NVIDIA A100-SXM4-40GB", "H100 SXM", other_gpu.STAND_IN),
    ],
)
def test_power_limited_and_substituted_cards_have_their_own_errors(
    here: str, there: str, key: str
) -> None:
    assert outcomes_of(_board(here), _board(there)) == key
