"""How DataLoaders load: worker processes, pinned memory, batches in advance."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import pickle
from typing import TYPE_CHECKING, Any

from pyprof.trial.change import RefusedError, WhyNoEffect, change, whole_number
from pyprof.trial.script.run import Run  # noqa: TC001 - a change's signature

if TYPE_CHECKING:
    from collections.abc import Callable

_WORKERS = str(max(1, min(4, os.cpu_count() or 1)))
_SHARDED = "get_worker_info"
"""What a dataset calls to give each worker its part."""


@change(
    "workers",
    takes="N",
    default=_WORKERS,
    check=whole_number,
    code="DataLoader(..., num_workers={value}, persistent_workers=True)",
    advised_by=("data_loading",),
)
def workers(run: Run) -> WhyNoEffect:
    """Load data in N processes."""

    def alter(loader: dict[str, Any]) -> str | None:
        if loader.get("num_workers"):
            return "the script's DataLoaders have workers already"
        _check_dataset(run, loader)
        loader.update(num_workers=int(run.value), persistent_workers=True)
        run.note("workers draw other random numbers: losses of augmented data differ")
        return None

    return _alter_loaders(alter)


@change("pin-memory", code="DataLoader(..., pin_memory=True)", advised_by=("pageable_copies",))
def pin_memory(run: Run) -> WhyNoEffect:
    """Load batches into pinned memory, from which copies to a GPU are faster."""
    import torch  # noqa: PLC0415 - the user's own

    del run
    if not torch.cuda.is_available():
        raise RefusedError("there is no GPU here to copy to")

    def alter(loader: dict[str, Any]) -> str | None:
        if loader.get("pin_memory"):
            return "the script pins memory already"
        loader["pin_memory"] = True
        return None

    return _alter_loaders(alter)


@change(
    "prefetch",
    takes="N",
    default="4",
    check=whole_number,
    code="DataLoader(..., prefetch_factor={value})",
)
def prefetch(run: Run) -> WhyNoEffect:
    """Let each worker load N batches in advance."""

    def alter(loader: dict[str, Any]) -> str | None:
        if not loader.get("num_workers"):
            return "no DataLoader has workers; try workers first"
        if loader.get("prefetch_factor") is not None:
            return "the script sets prefetch_factor itself"
        loader["prefetch_factor"] = int(run.value)
        return None

    return _alter_loaders(alter)


def _alter_loaders(alter: Callable[[dict[str, Any]], str | None]) -> WhyNoEffect:
    """Let `alter` change the arguments of each DataLoader; it returns why it does not."""
    from torch.utils.data import DataLoader  # noqa: PLC0415 - the user's own

    create = DataLoader.__init__
    signature = inspect.signature(create)
    reasons: list[str | None] = []

    def init(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - torch's
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given.pop("self")
        reasons.append(alter(given))
        create(self, **given)

    DataLoader.__init__ = init  # type: ignore[method-assign]

    def why_no_effect() -> str | None:
        if not reasons:
            return "no DataLoader was made"
        return None if None in reasons else reasons[0]

    return why_no_effect


def _check_dataset(run: Run, loader: dict[str, Any]) -> None:
    """Refuse a dataset that worker processes would repeat, or that cannot be sent to them."""
    from torch.utils.data import IterableDataset  # noqa: PLC0415 - the user's own

    dataset = loader["dataset"]
    if isinstance(dataset, IterableDataset) and not _is_sharded(dataset):
        run.refuse(
            f"each worker would load all of {type(dataset).__name__}, an IterableDataset that does "
            f"not use {_SHARDED}()"
        )
    if (loader.get("multiprocessing_context") or _start_method()) == "fork":
        return
    sent = [loader.get(name) for name in ("dataset", "collate_fn", "worker_init_fn")]
    try:
        pickle.dumps(sent)
    except Exception as error:  # noqa: BLE001 - whatever the object raises
        run.refuse(f"the dataset cannot be sent to a worker: {error}")


def _start_method() -> str:
    """Return how processes start, and leave the script free to choose it later."""
    return (
        multiprocessing.get_start_method(allow_none=True)
        or multiprocessing.get_all_start_methods()[0]
    )


def _is_sharded(dataset: object) -> bool:
    from torch.utils.data import IterableDataset  # noqa: PLC0415 - the user's own

    classes = type(dataset).__mro__
    try:
        sources = map(inspect.getsource, classes[: classes.index(IterableDataset)])
        return any(_SHARDED in source for source in sources)
    except (OSError, TypeError):
        return False
