"""Which of the calls around an op on the CPU may be charged: the outermost first.

Not those that were left before they ran to the end, nor those on a tensor of functorch: they hide
the sizes of a batch, and may stand for several ops. What it calls shows all.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from pyprof import marker
from pyprof.prof import functorch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.prof.chosen_call import ChosenCall

STOPPED = "stopped: gradient checkpointing needed no more than what ran before it"


def stopped(text: str) -> bool:
    """Tell whether a text is of an op that began and never ran to its end."""
    return text.endswith(marker.STOPPED) and marker.decode_seq(text).stopped


def outermost(calls: Sequence[ChosenCall], texts: Sequence[str]) -> list[ChosenCall]:
    """Choose among the calls around a row, the deepest first, which stand at positions of `texts`.

    Given back are those that may be charged, the outermost first.
    """
    ran = [*takewhile(lambda work: not stopped(texts[work.position]), calls)]
    functorch_call = functorch.innermost([work.call for work in ran])
    if functorch_call is not None:
        place, call = functorch_call
        ran = [*ran[:place], replace(ran[place], call=call)]
    return ran[::-1]
