"""Every wrapped op, called with torch's own samples: equal results, balanced ranges."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch.overrides import get_testing_overrides

import pyprof
from pyprof import marker
from pyprof.instrument.ops.targets import find_targets
from tests.instrument.conftest import Recorder
from tests.torch_samples import op_infos, samples

pytestmark = pytest.mark.filterwarnings("ignore")  # samples use what torch deprecates

TARGETS = {id(target.original): target for target in reversed(list(find_targets()))}
"""By function: the first home and name, which is the one that markers give."""


def variants(info: Any) -> Iterator[tuple[Any, Any]]:
    """Return the wrapped functions that an entry's samples can be given to, home and name."""
    candidates = [info.op, info.method_variant, info.inplace_variant, info.operator_variant]
    candidates += [getattr(alias, "op", None) for alias in info.aliases]
    for home in (torch, F, torch.linalg, torch.fft, torch.special):
        for name in {info.name.rpartition(".")[2], *(alias.name for alias in info.aliases)}:
            candidates.append(vars(home).get(name))
    seen: set[int] = set()
    for candidate in candidates:
        if id(candidate) in TARGETS and id(candidate) not in seen:
            seen.add(id(candidate))
            yield candidate, TARGETS[id(candidate)]


def same(a: Any, b: Any) -> bool:
    """Compare results: tensors to the bit, nan equal to nan."""
    if isinstance(a, torch.Tensor):
        if a.layout != torch.strided:
            return bool(type(a) is type(b) and a.shape == b.shape)
        a, b = (torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in (a, b))
        return bool(
            torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())
        )
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b) if not hasattr(a, "__dict__") else type(a) is type(b)


def fresh(value: Any) -> Any:
    """Copy tensors, so that in-place ops start from the same."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (tuple, list)):
        return type(value)(map(fresh, value)) if type(value) in (tuple, list) else value
    return value


def run(function: Callable[..., Any], sample: Any) -> tuple[str, Any]:
    torch.default_generator.manual_seed(0)
    try:
        args = (fresh(sample.input), *map(fresh, sample.args))
        return "gave", function(*args, **{k: fresh(v) for k, v in sample.kwargs.items()})
    except Exception as error:  # noqa: BLE001 - a sample may not suit a variant
        return "raised", f"{type(error).__name__}"


def tensors_of(sample: Any) -> list[tuple[tuple[int, ...], str]]:
    """Return what a marker should say of the arguments that are tensors and come by position."""
    given = [value for value in (sample.input, *sample.args) if type(value) is torch.Tensor]
    return [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in given]


def first_sample(info: Any) -> Any:
    """Return a sample of the first dtype that the op takes on a CPU; None if there is none."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64, torch.uint8):
        if dtype in info.supported_dtypes("cpu"):
            try:
                return next(samples(info, dtype), None)
            except Exception:  # noqa: BLE001 - needs a package that is not here
                return None
    return None


_X, _IMAGE = torch.randn(2, 3), torch.randn(2, 4, 8, 8)
NOT_IN_THE_TABLES: dict[Any, tuple[Any, ...]] = {
    F.affine_grid: (torch.randn(2, 2, 3), [2, 3, 4, 4]),
    F.embedding: (torch.tensor([1, 0]), _X),
    F.fold: (torch.randn(1, 12, 4), (3, 3), (2, 2)),
    F.gumbel_softmax: (_X,),
    F.lp_pool1d: (torch.randn(2, 4, 8), 2.0, 2),
    F.lp_pool2d: (_IMAGE, 2.0, 2),
    **dict.fromkeys((F.elu_, F.hardtanh_, F.leaky_relu_, F.relu_, F.rrelu_), (_X,)),
    torch.threshold_: (_X, 0.1, 20.0),
}
"""Functions that torch's tables have no samples of, and their arguments."""


@pytest.mark.slow
def test_ops_of_torchs_own_tables(recorder: Recorder) -> None:
    entries = [(info, sample) for info in op_infos() if (sample := first_sample(info)) is not None]
    jobs = [
        (function, target, sample)
        for info, sample in entries
        for function, target in variants(info)
    ]
    for function, (first, *rest) in NOT_IN_THE_TABLES.items():
        sample = SimpleNamespace(input=first, args=rest, kwargs={})
        jobs.append((function, TARGETS[id(function)], sample))
    expected = [run(function, sample) for function, _, sample in jobs]
    again = [run(function, sample) for function, _, sample in jobs]
    pyprof.init(force=True, stack=False)
    called = set()
    for (_, target, sample), before, twin in zip(jobs, expected, again, strict=True):
        recorder.clear()
        found = run(getattr(target.home, target.name), sample)
        assert recorder.depth == 0, target.name
        assert found[0] == before[0], (target.name, found, before)
        if before[0] == "gave":
            called.add(id(target.original))
            outermost = [marker.decode_op(text) for depth, text in recorder.pushed if depth == 0]
            assert (target.mod, target.name) in {(c.mod, c.op) for c in outermost if c}
            assert all(c is not None and c.whole for c in outermost)
            own = next(c for c in outermost if c and (c.mod, c.op) == (target.mod, target.name))
            told = [(t.shape, t.dtype) for t in own.args if isinstance(t, marker.Tensor)]
            assert told == tensors_of(sample), target.name
            assert set(own.kwargs) >= set(sample.kwargs), target.name
            if "empty" in target.name:  # what was in memory before
                continue
            if same(before[1], twin[1]):  # else it is not a function of its inputs
                assert same(before[1], found[1]), target.name
    assert len(called) > 700
    assert called >= {*map(id, NOT_IN_THE_TABLES)}


def test_every_overridable_function_with_a_dummy(recorder: Recorder) -> None:
    """Each lets an argument take over and raises as before, and its ranges close.

    One known difference: an argument that takes over is asked before torch counts arguments.
    """
    table = get_testing_overrides()
    jobs = [target for target in TARGETS.values() if target.original in table]
    assert len(jobs) > 900

    class Dummy:
        """Useless as an argument, but overrides every function that can be overridden."""

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "taken", len(args), func == getattr(target_now[0].home, target_now[0].name)

    target_now: list[Any] = []

    def call(target: Any) -> list[Any]:
        target_now[:] = [target]
        function = getattr(target.home, target.name)
        results = []
        for count in (1, 2, 3):
            try:
                results.append(function(*[Dummy() for _ in range(count)]))
            except Exception as error:  # noqa: BLE001, PERF203 - that it is the same is what is tested
                results.append(type(error))
        return results

    expected = [call(target) for target in jobs]
    pyprof.init(force=True, stack=False)
    for target, before in zip(jobs, expected, strict=True):
        for was, found in zip(before, call(target), strict=True):
            if isinstance(found, tuple) and was is not TypeError:
                assert found[:2] == was[:2], target
                assert found[2] or not was[2], target
            elif found != was:
                assert (isinstance(found, tuple), was) == (True, TypeError), target
        assert recorder.depth == 0
