"""Attention's work for the requests of a serving step: their lengths are not in its arguments.

Where the range around a serving step states their sums, the work is exact: 2 (D + Dv) operations
per score and head; a request in prefill has Nq Nk - Nq^2 / 2 scores, one in decode Nq Nk (see
`serving_steps`). Bytes: queries read and the result written once, keys and values of all cached
tokens read once. A sliding window lowers both, if the call or the model's configuration states it.
"""

from pyprof.marker import Tensor
from pyprof.marker.serving_steps import Batch, Phase
from pyprof.ops.model_config import LAYER_TYPES
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.nn.attention import Band
from pyprof.ops.work import Args, CallContext, Work, fresh, has_rank, require, size

EXAMPLE_STEP = CallContext(batch=Batch(Phase(1, 6, 8, 36, 48), Phase(2, 2, 10, 2, 10)))
"""The context of worked examples: 6 new tokens of 8, and 2 of two requests with 10 in all."""
FULL = "requests of the step's range, all keys seen"
"""The source of a cost that an unrecorded sliding window would reduce."""
_WINDOWED = "requests of the step's range, the keys of a window seen"
_EQUAL = "requests of equal length without cached keys, the only ones of these sizes"


def by_requests(a: Args, q: Tensor, key_heads: int, value_width: int, kept: str | None) -> Work:
    """Return the work for the requests of the step, of queries [tokens, heads, head].

    `kept` is the dtype of cached keys and values.
    """
    heads, width = size(q, -2), size(q, -1)
    require(key_heads and not heads % key_heads)
    equal = None if a.context.batch is not None else _of_equal_length(a, q)
    batch = equal or a.batch()
    check_tokens(batch, q)
    window = _seen_window(a, max(batch.prefill.keys, batch.decode.keys))
    seen = batch
    if window is not None:
        prefill = _within(window, batch.prefill, causal=True)
        seen = Batch(prefill, _within(window, batch.decode, causal=False))
    out = fresh((batch.queries, heads, value_width), q.dtype)
    cached = fresh((seen.keys, key_heads, width + value_width), kept)
    params: dict[str, object] = {"H": heads, "Hk": key_heads, "D": width, "Dv": value_width}
    params |= {"Nq": batch.queries, "Nk": batch.keys, "type": q.dtype, "window": window}
    flops = heads * seen.twice_scores * (width + value_width)
    given = fresh((batch.queries, heads, width), q.dtype)
    via = _EQUAL if equal else _WINDOWED if window is not None else FULL
    return Work(flops, (given, cached), (out,), params, via=via)


def token_count(q: Tensor) -> int:
    """Count the tokens of [.., heads, head]."""
    return q.numel // max(1, size(q, -2) * size(q, -1))


def check_tokens(batch: Batch, q: Tensor) -> None:
    """Raise Unknown if the op was given fewer tokens than its step has."""
    if batch.queries > token_count(q):
        raise Unknown("the step's range states more tokens than the op was given")


def _seen_window(a: Args, longest: int) -> int | None:
    """Return how many keys before its own a query sees; None if all of at most `longest`.

    The window is in the call, else in the model's configuration. Raises Unknown if that does not
    state which layers have its window.
    """
    stated, model = a.values.get("window_size_left"), a.context.model
    window = stated if type(stated) is int and stated >= 0 else None
    if type(stated) is not int and model is not None and model.window is not None:
        if longest <= model.window:
            return None
        layer = a.context.layer
        if model.windowed is None or layer is None:
            which = f"which layers have the model's window of {model.window} keys not"
            missing = f"stated: {LAYER_TYPES}" if model.windowed is None else "recorded"
            raise Unknown(f"{which} {missing}")
        window = model.window - 1 if model.windowed[layer] else None
    return window if window is not None and longest > window else None


def _within(window: int, phase: Phase, *, causal: bool) -> Phase:
    """Return a phase whose sums are the scores and the keys within the window.

    Raises Unknown for a phase of several requests: sums do not show how long each is.
    """
    if phase.keys <= window:
        return phase
    if phase.requests != 1:
        raise Unknown("lengths of the requests within a sliding window not recorded")
    queries = phase.queries
    keys = min(phase.keys, queries + window)
    if causal:
        twice = Band(window, 0, from_end=True).seen(queries, phase.keys)
    else:
        twice = 2 * queries * min(phase.keys, window + 1)
    squared = twice % 2  # keeps the half of an odd area
    return Phase(1, queries, keys, squared if causal else 0, (twice + squared) // 2)


def _of_equal_length(a: Args, q: Tensor) -> Batch | None:
    """Return the requests of a causal call if its sizes leave only one possibility; else None.

    As many tokens as requests times the longest: all are the longest. No more keys than the longest
    has queries: nothing was cached before.
    """
    starts, longest = a.optional("cum_seq_q"), a.values.get("max_q")
    if starts is None or len(starts.shape) != 1 or type(longest) is not int:
        return None
    count = starts.numel - 1
    tokens = token_count(q)
    full = count >= 1 and longest >= 1 and count * longest == tokens
    if not full or a.values.get("is_causal") is not True or _reach(a) != longest:
        return None
    square = count * longest * longest
    return Batch(Phase(count, tokens, tokens, square, square), Phase())


def _reach(a: Args) -> int | None:
    """Return the most keys of a request: as stated, else what its pages hold; None if unknown."""
    stated = a.values.get("max_k")
    if type(stated) is int and stated > 0:
        return stated
    table, cache = a.optional("block_table"), a.optional("key")
    if table is None or cache is None or not (has_rank(table, 2) and has_rank(cache, 4)):
        return None
    return table.shape[1] * cache.shape[1]
