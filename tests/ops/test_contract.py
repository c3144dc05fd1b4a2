"""The broken clause of a formula's contract is named; each module of formulas has a test."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops import Args, OpModel, Work
from pyprof.ops.examples import f32
from tests.known import known
from tests.ops.contract import broken_clauses
from tests.programs import TOP


def _bare(a: Args) -> Work:
    raise NotImplementedError(a)


MM = Call("torch", "mm", (f32(2, 3), f32(3, 4)))
BREAKS: dict[str, Callable[[OpModel], OpModel]] = {
    "gives what the example claims": lambda model: replace(model, flops=1),
    "tells FLOPs or bytes": lambda model: replace(model, flops=None, bytes=None),
    "carries a worked example": lambda model: replace(model, example=None),
    "says in a docstring": lambda model: replace(model, formula=_bare),
    "makes the op of the example a known one": lambda model: replace(
        model, example=Call("torch", "no_such_op")
    ),
    "is found for the op of the example": lambda model: replace(model, names=("relu",)),
    "in proportion to the batch": lambda model: replace(
        model, names=("linear",), example=Call("torch", "relu")
    ),
}


@pytest.mark.parametrize("clause", BREAKS)
def test_a_broken_clause_is_named(clause: str) -> None:
    model = known(ops.find(MM, ops.FPROP))
    assert any(clause in broken for broken in broken_clauses(BREAKS[clause](model)))


def test_every_module_of_formulas_has_a_test_at_its_path() -> None:
    modules = {m.formula.__module__ for m in ops.models()}
    missing = []
    for module in sorted(name for name in modules if name.startswith("pyprof.ops.")):
        path = "/".join(["tests", *module.split(".")[1:-1], f"test_{module.rpartition('.')[2]}.py"])
        line = f'test_formulas_keep_the_contract = contract_of("{module[11:]}")'
        if not (TOP / path).exists() or line not in (TOP / path).read_text("utf-8"):
            missing.append(f"write {path}: from tests.ops.contract import contract_of; {line}")
    assert not missing, "\n".join(missing)
