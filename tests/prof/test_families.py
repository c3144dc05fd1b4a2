"""Families of ops, by which kernel roles are judged."""

from __future__ import annotations

from pyprof.gpu.roles import FAMILY_RANKS
from pyprof.ops import registry
from pyprof.prof import families


def test_families_are_of_files_that_there_are_and_have_kernels() -> None:
    """No name is misspelt, of a file or of a family, and no family is without ops."""
    files = {model.formula.__module__.rpartition(".")[2] for model in registry.models()}
    assert set(families._FAMILIES) <= files
    assert {families.family_of(model) for model in registry.models()} == {*FAMILY_RANKS, ""}
