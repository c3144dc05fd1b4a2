"""Bytes written by Python-level calls, compared with torch; `test_bytes` has ATen's calls.

Torch's own samples of every op, each called as a program calls it, positional and named arguments
as the sample has them: sizes that are one number, defaults, negative dimensions.
"""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from pyprof import ops
from pyprof.marker import Call
from tests.ops.test_bytes import written_bytes
from tests.ops.torch_calls import Recorder, python_call, tensors
from tests.torch_samples import op_infos, samples

SAMPLES = 3
_ELSEWHERE = ("masked", "sparse", "special", "signal", "torch", "_refs")
"""Homes that op_db names and no marker does."""

_NOT_HERE = ("jiterator", "to_sparse")  # a GPU's alone; a tensor without a storage

# What a formula gives is not what torch returns, and why.
EXPLAINED = {
    "allclose": "the result is a Python truth value, not a tensor",
    "equal": "the result is a Python truth value, not a tensor",
    "_batch_norm_with_update": "running statistics are written too, yet not returned",
    "_native_batch_norm_legit": "running statistics are written too, yet not returned",
    "native_batch_norm": "running statistics are written too, yet not returned",
    "nn.functional.batch_norm": "statistics are kept for the backward, not returned",
    "nn.functional.group_norm": "statistics are kept for the backward, not returned",
    "nn.functional.instance_norm": "statistics are kept for the backward, not returned",
    "nn.functional.layer_norm": "statistics are kept for the backward, not returned",
    "nn.functional.rms_norm": "statistics are kept for the backward, not returned",
    "nn.functional.adaptive_max_pool1d": "indices are written whether they are returned or not",
    "nn.functional.adaptive_max_pool2d": "indices are written whether they are returned or not",
    "nn.functional.adaptive_max_pool3d": "indices are written whether they are returned or not",
    "nn.functional.alpha_dropout": "the mask is kept for the backward, not returned",
    "nn.functional.dropout": "the mask is kept for the backward, not returned",
    "nn.functional.dropout2d": "the channels' factors are kept for the backward, not returned",
    "nn.functional.dropout3d": "the channels' factors are kept for the backward, not returned",
    "nn.functional.feature_alpha_dropout": "as dropout3d",
    "nn.functional.embedding": "the sample has its arguments in ATen's order",
    "nn.functional.embedding_bag": "the sample has its arguments in ATen's order",
    "linalg.cholesky_ex": "the error code is not counted",
    "linalg.inv_ex": "the error code is not counted",
    "linalg.solve_ex": "the error code is not counted",
    "linalg.ldl_factor": "pivots are not counted",
    "linalg.ldl_factor_ex": "pivots are not counted",
    "lu": "pivots are not counted",
    "linalg.lstsq": "residuals and rank are not counted",
    "triangular_solve": "the coefficients are returned, uncopied in the modern form",
    "tensordot": "a dimension of 1 meets a longer one",
}


def _homes() -> list[tuple[Any, str, str]]:
    """Return each op of torch's samples, and the namespace and name that a marker gives it."""
    found = []
    for info in op_infos():
        home, _, name = info.name.rpartition(".")
        if home.partition(".")[0] not in _ELSEWHERE and not name.startswith(_NOT_HERE):
            found.append((info, f"torch.{home}" if home else "torch", name))
    return found


def _calls() -> Iterator[tuple[str, Call, list[Any]]]:
    """Yield each op's name in op_db, a call as a marker holds it, and its result's tensors."""
    for (info, mod, name), dtype in itertools.product(_homes(), (torch.float32, torch.complex64)):
        model = ops.find(Call(mod, name))
        if dtype not in info.dtypes or model is None or not model.work:
            continue
        if dtype.is_complex and mod not in ("torch.fft", "torch.linalg"):
            continue
        for sample in itertools.islice(samples(info, dtype), SAMPLES):
            args = (sample.input, *sample.args)
            result = tensors(info.op(*args, **sample.kwargs))
            inputs = {t.untyped_storage().data_ptr() for t in tensors(list(args))}
            if not any(t.untyped_storage().data_ptr() in inputs for t in result if t.numel()):
                yield info.name, python_call(mod, name, *args, **sample.kwargs), result


@pytest.mark.slow
def test_bytes_written_by_python_calls_are_those_of_their_results() -> None:
    """Every op of torch's own samples with a formula, except views."""
    wrong: dict[str, str] = {}
    explained: set[str] = set()
    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's samples use what torch deprecates
        calls = list(_calls())
    for name, call, result in calls:
        ours = written_bytes(call)
        if ours is None:
            continue
        seen.add(name)
        real = sum(t.numel() * t.element_size() for t in result)
        if ours != real and name in EXPLAINED:
            explained.add(name)
        elif ours != real:
            wrong.setdefault(name, f"{ours} not {real}: {call}")
    assert wrong == {}
    assert len(seen) > 350
    assert set(EXPLAINED) == explained  # none that hides nothing


WITHOUT_FORMULA = {
    *("expand_copy", "diagonal_copy", "as_strided_copy", "narrow_copy", "unfold_copy", "frexp"),
    *("histogram", "histogramdd", "hash_tensor", "_segment_reduce"),
    *("_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"),
}
"""No training script was seen to spend time in these."""


def _made_of_known_ops(info: Any) -> bool:  # noqa: ANN401 - torch's own
    """Whether every ATen call inside the op's first samples has a formula."""
    dtype = torch.float32 if torch.float32 in info.dtypes else next(iter(info.dtypes))
    recorder = Recorder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(samples(info, dtype), 2):
            with recorder:
                info.op(sample.input, *sample.args, **sample.kwargs)
    calls = [call for _, call, *_ in recorder.made if call.op != "_linalg_check_errors"]
    return all(ops.find(call) is not None for call in calls)


@pytest.mark.slow
def test_every_op_that_torch_samples_has_a_formula_or_is_made_of_such_ops() -> None:
    """To mend: a formula in the module of its family in pyprof/ops/torch, or a word in the list."""
    missing = {
        info.name
        for info, mod, name in _homes()
        if ops.find(Call(mod, name)) is None
        and ops.find(Call("aten", name)) is None
        and not _made_of_known_ops(info)
    }
    assert missing == WITHOUT_FORMULA
