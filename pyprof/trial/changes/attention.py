"""Scaled-dot-product attention in models of Hugging Face's transformers."""

from __future__ import annotations

from typing import Any

from pyprof.trial.change import WhyNoEffect, change
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

_SDPA, _EAGER = "sdpa", "eager"


@change(
    "sdpa",
    advised_by=("eager_attention",),
    predicted_by="--fuse attention",
    code='model = AutoModel.from_pretrained(name, attn_implementation="sdpa")\n'
    "# in a model of your own: F.scaled_dot_product_attention(q, k, v)",
)
def sdpa(run: Run) -> WhyNoEffect:
    """Use PyTorch's fused attention in models of Hugging Face's transformers."""
    seen: list[str] = []

    def begin(module: Any) -> None:  # noqa: ANN401 - a module
        for each in module.modules():
            choose: Any = getattr(each, "set_attn_implementation", None)
            if choose is None:
                continue
            before = str(getattr(each.config, "_attn_implementation", ""))
            seen.append(before)
            if before == _EAGER:
                try:
                    choose(_SDPA)
                except ValueError as error:
                    run.refuse(f"transformers refuses: {' '.join(str(error).split())}")

    run.calls.on_loop(begin)

    def why_no_effect() -> str | None:
        if _EAGER in seen:
            return None
        if seen:
            return f"the script's model has {seen[0]} attention already"
        return (
            "no model of transformers; in your own attention, write "
            "F.scaled_dot_product_attention(q, k, v)"
        )

    return why_no_effect
