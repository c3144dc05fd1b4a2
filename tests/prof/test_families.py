"""Families of ops, by which kernel roles are judged."""

from __future__ import annotations

from pyprof.gpu.roles import FAMILY_RANKS
from pyprof.ops import registry
from pyprof.prof import families


def test_every_file_of_formulas_has_a_family() -> None:
    """A file is called like its family, or its family is written down; no name is misspelt."""
    files = {model.formula.__module__.rpartition(".")[2] for model in registry.models()}
    known = set(families._FAMILIES) | set(FAMILY_RANKS)
    assert files - known == set()
    assert set(families._FAMILIES) - files == set()
    assert {families.family_of(model) for model in registry.models()} <= {*FAMILY_RANKS, ""}
