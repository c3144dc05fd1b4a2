"""Each role that a rule can give has a real kernel name."""

from pyprof.gpu.role_rules import FUNCTOR_RULES, PATH_RULES
from tests.gpu.test_kernel_roles import NAMES


def test_every_role_of_the_rules_has_a_real_name() -> None:
    """To mend: add one to NAMES of test_kernel_roles.py. No capture has a persistent RNN."""
    roles = {role.value for role, _ in (*PATH_RULES, *FUNCTOR_RULES)}
    assert roles - {expected for expected, _ in NAMES} == {"rnn"}
