"""Implementations of torch's optimizers: one kernel for all parameters, or lists of them."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_KEYS = ("fused", "foreach")


@change(
    "fused-optimizer",
    code="optimizer = torch.optim.AdamW(model.parameters(), fused=True)",
    advised_by=("unfused_optimizer",),
)
def fused_optimizer(run: Run) -> WhyNoEffect:
    """Use the fused implementation of the optimizer."""
    return _choose_implementation(run, "fused")


@change("foreach", code="optimizer = torch.optim.AdamW(model.parameters(), foreach=True)")
def foreach(run: Run) -> WhyNoEffect:
    """Use the implementation of the optimizer that works on lists of parameters."""
    return _choose_implementation(run, "foreach")


def _choose_implementation(run: Run, key: str) -> WhyNoEffect:
    import torch  # noqa: PLC0415 - the user's own

    changed: list[None] = []
    chosen: list[str] = []

    def replace(cls: Any) -> None:  # noqa: ANN401 - a class of optimizers
        create = cls.__init__
        signature = inspect.signature(create)

        @wraps(create)
        def init(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's
            given = signature.bind_partial(self, params, *args, **kwargs).arguments
            own = [name for name in _KEYS if given.get(name) is not None]
            if own or type(self) is not cls:
                chosen.extend(own)
                create(self, params, *args, **kwargs)
                return
            listed = params if isinstance(params, (list, tuple)) else list(params)
            try:
                create(self, listed, *args, **{**kwargs, key: True})
            except (RuntimeError, ValueError) as error:
                run.refuse(f"torch refuses: {' '.join(str(error).split())}")
            changed.append(None)

        cls.__init__ = init

    classes: list[Any] = [each for each in vars(torch.optim).values() if isinstance(each, type)]
    for cls in classes:
        if key in inspect.signature(cls.__init__).parameters:
            replace(cls)

    def why_no_effect() -> str | None:
        if changed:
            return None
        if chosen:
            return f"the script chooses the implementation itself ({chosen[0]})"
        return f"no optimizer of torch with {key} was made"

    return why_no_effect
