"""Torch's own samples of its ops, used by its own tests."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")


def op_infos() -> list[Any]:
    """Return torch's table of ops with sample inputs; skips where its tools are not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("expecttest", reason="torch's testing tables need it")
        methods = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    return list(methods.op_db)


def samples(info: Any, dtype: Any, *, requires_grad: bool = False) -> Iterator[Any]:  # noqa: ANN401 - torch's own
    """Return an op's sample inputs on the CPU, always the same.

    Not by `info.sample_inputs`, which inspects the stack and seeds every device for each sample.
    """
    torch.default_generator.manual_seed(0)
    found: Iterator[Any] = info.sample_inputs_func(info, "cpu", dtype, requires_grad)
    return iter(found)
