"""Formulas of `autograd_functions`, by their worked examples and foreign arguments."""

from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("libraries.autograd_functions")
