"""The number of threads that torch computes with on a CPU."""

from __future__ import annotations

from pyprof.trial.change import RefusedError, WhyNoEffect, change, whole_number
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature


@change("threads", takes="N", check=whole_number, code="torch.set_num_threads({value})")
def threads(run: Run) -> WhyNoEffect:
    """Let torch use N threads on a CPU."""
    import torch  # noqa: PLC0415 - the user's own

    wanted, before = int(run.value), torch.get_num_threads()
    if wanted == before:
        raise RefusedError(f"torch uses {before} threads already")
    torch.set_num_threads(wanted)

    def why_no_effect() -> str | None:
        now = torch.get_num_threads()
        return None if now == wanted else f"the script sets {now} threads itself"

    return why_no_effect
