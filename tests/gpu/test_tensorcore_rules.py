"""Each rule of Tensor Cores has a name of its own and decides a real kernel's name."""

from collections import Counter

import pytest

from pyprof.gpu.tensorcore import tensor_core
from pyprof.gpu.tensorcore_rules import RULES, Rule
from tests.gpu.tensorcore_names import NAMES


def test_rule_names_are_unique() -> None:
    """A rule's name is what users filter by: it names one line of the table."""
    counts = Counter(rule.name for rule in RULES)
    assert {name: n for name, n in counts.items() if n > 1} == {}


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_every_rule_decides_a_real_name(rule: Rule) -> None:
    """A rule that no real name needs is dead: each is the reason of at least one row."""
    reasons = {tensor_core(name).rule.split(":")[0] for _, _, name in NAMES}
    assert rule.name in reasons
