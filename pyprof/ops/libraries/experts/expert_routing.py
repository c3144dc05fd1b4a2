"""Which tokens go to which experts: choosing, sorting by expert and back.

A softmax or sigmoid over the gates costs 24 an element; a place costs nothing. Bytes: rows read and
written once, and where they go.
"""

from pyprof.ops.examples import Example, b8, bf16, f32, i16, i32, i64
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.indexing import picked
from pyprof.ops.work import Args, Work, fresh, like, require, row_count, size

FAMILY = "moe"

_X, _ROWS, _GATES, _GATES32 = bf16(4, 6), bf16(8, 6), bf16(4, 8), f32(4, 8)
_CHOSEN, _IDS, _SORTED = f32(4, 2), i32(4, 2), i32(64)
_BIAS, _BIAS32, _INDICES, _STARTS = bf16(8), f32(8), i32(8), i64(9)
_SOFTMAX = 24


# softmax of 4 * 8, 24 each; 32 read of 2 bytes, 8 weights, 8 expert ids and 8 indices written of 4
@op(
    *("_moe_C::topk_softmax", "_moe_C::topk_sigmoid", "aiter::topk_softmax"),
    *("aiter::topk_softmax_asm", "vllm::rocm_aiter_topk_softmax", "_moe_C::topk_softplus_sqrt"),
    signature="Tensor weights, Tensor experts, Tensor indices, Tensor gates",
    example=Example((_CHOSEN, _IDS, _IDS, _GATES), flops=768, bytes=160),
)
@op(
    *("sgl_kernel::topk_softmax", "sgl_kernel::topk_sigmoid", "aiter::topk_sigmoid"),
    "vllm::rocm_aiter_topk_sigmoid",
    signature="Tensor weights, Tensor experts, Tensor gates",
    # no indices
    example=Example((_CHOSEN, _IDS, _GATES, True), flops=768, bytes=128),
)
@op(
    *("aiter::biased_grouped_topk", "aiter::biased_grouped_topk_hip", "aiter::moe_fused_gate"),
    *("aiter::_moe_fused_gate", "vllm::rocm_aiter_biased_grouped_topk"),
    signature="Tensor gates, Tensor bias, Tensor weights, Tensor experts",
    # a bias of 8 of 2 bytes
    example=Example((_GATES, _BIAS, _CHOSEN, _IDS), flops=768, bytes=144),
)
@op(
    *("aiter::grouped_topk", "vllm::rocm_aiter_grouped_topk"),
    signature="Tensor gates, Tensor weights, Tensor experts",
    example=Example((_GATES, _CHOSEN, _IDS), flops=768, bytes=128),
)
@op(
    "sglang::fused_topk_deepseek",
    signature=(
        "Tensor gates, Tensor bias, int groups, int top_groups, int chosen, float factor,"
        "Tensor weights, Tensor experts"
    ),
    # gates and bias of 4 bytes
    example=Example((_GATES32, _BIAS32, 2, 1, 2, 1.0, _CHOSEN, _IDS, True), flops=768, bytes=224),
)
def top_experts(a: Args) -> Work:
    """Each token's weights of experts, and the largest of them."""
    gates, writes = a.tensor("gates"), a.present("weights", "experts", "indices")
    return Work(_SOFTMAX * gates.numel, (gates, *a.present("bias")), writes)


# softmax of 4 * 8, 24 each; 32 and a bias of 8 read, 8 weights and 8 expert ids written of 4 bytes
@op(
    "_moe_C::grouped_topk",
    signature=(
        "Tensor gates, Tensor! biased, int groups, int top_groups, int chosen",
        (
            "Tensor gates, int groups, int top_groups, int chosen, bool renormalize, float factor,"
            "Tensor bias"
        ),
    ),
    example=Example((_GATES32, 2, 1, 2, True, 1.0, _BIAS32, 1), flops=768, bytes=224),
)
@op(
    "sgl_kernel::moe_fused_gate",
    signature="Tensor gates, Tensor bias, int groups, int top_groups, int chosen",
    # gates and bias of 2 bytes
    example=Example((_GATES, _BIAS, 2, 1, 2), flops=768, bytes=144),
)
@op(
    "vllm::rocm_aiter_fused_topk",
    signature="Tensor input, Tensor gates, int chosen",
    # no bias
    example=Example((_X, _GATES32, 2, True), flops=768, bytes=192),
)
def grouped_top(a: Args) -> Work:
    """The chosen experts of each token and their weights; the results are new."""
    gates, chosen = a.tensor("gates"), a.integer("chosen", 1)
    shape = (row_count(gates), chosen)
    writes = (fresh(shape, "float32"), fresh(shape, "int32"))
    return Work(_SOFTMAX * gates.numel, (gates, *a.present("bias", "biased")), writes)


# softmax of 4 * 2 chosen, 24 each; 32 read of 2 bytes, 8 weights and 8 expert ids written of 2, and
# a bit of each of 4 * 8, in words of 32
@op(
    "TopK",
    signature="Tensor gates, int chosen, bool softmax, int dim, bool bits",
    example=Example((_GATES, 2, True, 1, True, None, None), flops=192, bytes=112, mod=""),
)
def triton_top(a: Args) -> Work:
    """Triton's: the largest gates, their softmax, and a bit matrix of which token goes where."""
    gates, chosen = a.tensor("gates"), a.integer("chosen", 1)
    require(isinstance(a.values.get("bits"), bool))  # another function of that name
    tokens = row_count(gates)
    bits = fresh((tokens, -(-size(gates, -1) // 32)), "int32")
    writes = (fresh((tokens, chosen), gates.dtype), fresh((tokens, chosen), "int16"), bits)
    softmax = _SOFTMAX * tokens * chosen * a.flag("softmax", default=True)
    return Work(softmax, (gates,), writes)


# 8 weights and 8 expert ids read of 2 bytes; 8 weights of 2 bytes and two lists of 8 indices of 4
# written, and of 8 experts the tokens of each, of 4
@op(
    "SortTokens",
    signature="Tensor weights, Tensor experts, int count",
    example=Example((bf16(4, 2), i16(4, 2), 8), flops=0, bytes=144, mod=""),
)
def triton_sort(a: Args) -> Work:
    """Triton's: choices sorted by expert, where each went and came from, the experts' counts."""
    weights, experts = a.tensor("weights"), a.tensor("experts")
    require(weights.shape == experts.shape)
    indices = fresh((2, experts.numel), "int32")
    counts = fresh((a.integer("count", 0),), "int32")
    return Work(0, (weights, experts), (like(weights), indices, counts))


# 8 expert ids read, 8 indices and 8 experts of blocks written at least, of 4 bytes
@op(
    *("_moe_C::moe_align_block_size", "_moe_C::sgl_moe_align_block_size"),
    *("sgl_kernel::moe_align_block_size", "aiter::moe_align_block_size"),
    signature="Tensor experts, int count, int block, Tensor sorted, Tensor blocks",
    example=Example((_IDS, 8, 16, _SORTED, i32(4)), flops=0, bytes=80),
)
def align(a: Args) -> Work:
    """Choices sorted by expert, each expert's padded to whole blocks; padding is not counted."""
    experts, blocks = a.tensor("experts"), a.tensor("blocks")
    return Work(0, (experts,), (like(experts), blocks))


# 8 expert ids and weights read, indices and weights written, of 4 bytes; a result of 24 zeroed of 2
@op(
    *("aiter::moe_sorting_fwd", "aiter::moe_sorting_opus_fwd"),
    signature=(
        "Tensor experts, Tensor weights, Tensor sorted, Tensor sorted_weights,"
        "Tensor sorted_experts, Tensor valid, Tensor? out"
    ),
    example=Example(
        (_IDS, _CHOSEN, _SORTED, _SORTED, _SORTED, i32(2), _X, 8, 32), flops=0, bytes=176
    ),
)
def sort(a: Args) -> Work:
    """Choices and weights sorted by expert, and the result set to zero."""
    experts, weights = a.tensor("experts"), a.tensor("weights")
    out = a.present("out")
    return Work(0, (experts, weights), (like(experts), like(weights), *out))


# 8 expert ids read, 8 indices and 8 inverse ones written, of 4 bytes
@op(
    *("_C::get_cutlass_moe_mm_data", "sgl_kernel::get_cutlass_w4a8_moe_mm_data"),
    signature="Tensor experts, Tensor starts, Tensor first, Tensor second, Tensor indices",
    example=Example((_IDS, _STARTS, _IDS, _IDS, _INDICES, _INDICES, 8, 5, 6), flops=0, bytes=96),
)
@op(
    "sgl_kernel::prepare_moe_input",
    signature=(
        "Tensor experts, Tensor starts, Tensor? blocks, Tensor first, Tensor second, Tensor indices"
    ),
    example=Example(
        (_IDS, _STARTS, None, _IDS, _IDS, _INDICES, _INDICES, 8, 5, 6), flops=0, bytes=96
    ),
)
def plan(a: Args) -> Work:
    """Where each choice goes and comes from; the few numbers of each expert are not counted."""
    experts = a.tensor("experts")
    index = fresh((experts.numel,), "int32")
    return Work(0, (experts,), (index, index))


# 4 * 6 read and 8 * 6 written of 2 bytes, 8 expert ids read of 4, 8 indices and 8 inverse ones
# written of 4, 9 starts of 8
@op(
    "_moe_C::moe_permute",
    signature=(
        (
            "Tensor input, Tensor choices, Tensor tokens, Tensor? mapping, int count, int held,"
            "int chosen, int align, Tensor out, Tensor starts, Tensor back, Tensor indices,"
            "Tensor rows"
        ),
        (
            "Tensor input, Tensor choices, Tensor tokens, Tensor? mapping, int count, int held,"
            "int chosen, Tensor! out, Tensor starts, Tensor back, Tensor indices"
        ),
    ),
    example=Example(
        (_X, _IDS, _IDS, None, 8, 8, 2, _ROWS, _STARTS, _INDICES, _INDICES), flops=0, bytes=312
    ),
)
def permute(a: Args) -> Work:
    """Tokens' rows, once for each choice, sorted by expert; padding between experts not counted."""
    x, choices = a.tensor("input"), a.tensor("choices")
    rows = fresh((choices.numel, size(x, -1)), x.dtype)
    index = fresh((choices.numel,), "int32")
    return Work(0, (x, choices), (rows, index, index, a.tensor("starts")))


# 8 rows weighed and added to 4: 2 * 48; 48 and 24 of 2 bytes, 8 weights and 8 indices of 4
@op(
    "_moe_C::moe_unpermute",
    signature=(
        "Tensor input, Tensor weights, Tensor indices, Tensor? starts, int chosen, Tensor out"
    ),
    example=Example((_ROWS, _CHOSEN, _INDICES, _STARTS, 2, _X), flops=96, bytes=208),
)
def unpermute(a: Args) -> Work:
    """The outputs of a token's experts, weighted and added up."""
    x, weights, out = a.tensor("input"), a.tensor("weights"), a.tensor("out")
    rows = fresh((min(size(x, 0), weights.numel), size(x, -1)), x.dtype)
    indices = fresh((weights.numel,), "int32")
    return Work(2 * rows.numel, (rows, weights, indices), (out,))


# 8 rows of 6 read and written of 2 bytes, 8 indices of 4
@op(
    *("sgl_kernel::shuffle_rows", "_moe_C::shuffle_rows"),
    signature="Tensor input, Tensor indices, Tensor out",
    example=Example((_X, _INDICES, _ROWS), flops=0, bytes=176),
)
@op(
    "sgl_kernel::apply_shuffle_mul_sum",
    signature="Tensor input, Tensor out, Tensor indices, Tensor? factors",
    # each of 8 rows weighed and added: 2 * 48; 48 read and 24 written of 2 bytes, 8 indices of 4
    example=Example((_ROWS, _X, _INDICES, None), flops=96, bytes=176),
)
def shuffle(a: Args) -> Work:
    """Rows by index, those of a token weighted and added if requested; each is read once."""
    x, indices, out = a.tensor("input"), a.tensor("indices"), a.tensor("out")
    if a.op == "shuffle_rows":
        return Work(0, (picked(x, out.numel), indices), (out,))
    return Work(2 * x.numel, (x, indices, *a.present("factors")), (out,))


# 24 sums of two: 24 additions; 48 read, 24 written of 2 bytes
@op(
    *("_moe_C::moe_sum", "sgl_kernel::moe_sum_reduce", "aiter::moe_sum", "sgl_kernel::moe_sum"),
    signature="Tensor input, Tensor out",
    example=Example((bf16(4, 2, 6), _X), flops=24, bytes=144),
)
def combine(a: Args) -> Work:
    """The outputs of a token's experts, added up."""
    x, out = a.tensor("input"), a.tensor("out")
    return Work(max(0, x.numel - out.numel), (x,), (out,))


_MAP, _ROW_IDS = b8(4, 8), i32(4, 17)


# 4 rows of 6 read, 8 written of 2 bytes, a map of 4 * 8 of 1, and 4 * 17 indices of 4 written
@op(
    "te_moe::permute_mask_map_fwd",
    signature="Tensor input, Tensor map, int rows, Tensor? weights",
    example=Example((_X, _MAP, 8, None, None), flops=0, bytes=448),
)
@op(
    "te_moe::permute_index_map",
    signature="Tensor input, Tensor map, int rows",
    # 8 expert ids of 4 read, 8 indices of 4 written
    example=Example((_X, _IDS, 8, 4), flops=0, bytes=208),
)
def te_permute(a: Args) -> Work:
    """TransformerEngine's: rows of tokens, once for each choice, sorted by expert."""
    x, chosen, rows = a.tensor("input"), a.tensor("map"), a.integer("rows", 0)
    if rows <= 0:
        raise Unknown("rows of the result not recorded")
    by_mask = a.op == "permute_mask_map_fwd"
    indices = (size(chosen, 0), 2 * size(chosen, -1) + 1) if by_mask else (chosen.numel,)
    weights = tuple(fresh((rows,), t.dtype) for t in a.present("weights"))
    writes = (fresh((rows, size(x, -1)), x.dtype), fresh(indices, "int32"), *weights)
    return Work(0, (x, chosen, *a.present("weights")), writes)


# 8 rows added to 4: 48; 48 and 24 of 2 bytes, 4 * 17 indices of 4
@op(
    "te_moe::unpermute_mask_map_fwd",
    signature="Tensor input, Tensor indices, Tensor? weights, int tokens, int count, int hidden",
    example=Example((_ROWS, _ROW_IDS, None, 4, 8, 6, None), flops=48, bytes=416),
)
@op(
    "te_moe::permute_mask_map_bwd",
    signature=(
        "Tensor input, Tensor? weights, Tensor indices, Tensor? padding, int tokens, int count,"
        "int hidden"
    ),
    example=Example((_ROWS, None, _ROW_IDS, None, 4, 8, 6), flops=48, bytes=416),
)
def te_unpermute(a: Args) -> Work:
    """TransformerEngine's: outputs of a token's experts, weighted if weights exist, added up."""
    x, weights = a.tensor("input"), a.present("weights")
    out = like(x, (a.integer("tokens", 0), a.integer("hidden", 0)))
    each = 1 + bool(weights and a.op == "unpermute_mask_map_fwd")
    return Work(each * x.numel, (x, a.tensor("indices"), *weights), (out,))


# 4 rows of 6 read, 8 written of 2 bytes, 4 * 17 indices of 4 read
@op(
    "te_moe::unpermute_mask_map_bwd_no_probs",
    signature=(
        "Tensor input, Tensor indices, Tensor? padding, int tokens, int count, int rows, int hidden"
    ),
    example=Example((_X, _ROW_IDS, None, 4, 8, 8, 6), flops=0, bytes=416),
)
def te_unpermute_backward(a: Args) -> Work:
    """The gradient of each token's row, once for each choice."""
    x = a.tensor("input")
    out = like(x, (a.integer("rows", 0), a.integer("hidden", 0)))
    return Work(0, (x, a.tensor("indices")), (out,))


# 4 rows of 6 read, 8 written of 2 bytes, a map of 4 * 8 of 1
@op(
    *("_moe_permute_mask_map", "_moe_permute_index_map", "_moe_permute"),
    signature="Tensor input, Tensor map, int rows",
    example=Example((_X, _MAP, 8, None), flops=0, bytes=176, mod=""),
)
def te_permute_function(a: Args) -> Work:
    """Rows of tokens, once for each choice, sorted by expert."""
    x, rows = a.tensor("input"), a.integer("rows", 0)
    if rows <= 0:  # all of an index map's choices
        rows = a.tensor("map").numel if "mask" not in a.op else 0
    if not rows:
        raise Unknown("rows of the result not recorded")
    return Work(0, (x, a.tensor("map")), (like(x, (rows, size(x, -1))),))


# 8 rows added to 4: 48; 48 read, 24 written of 2 bytes
@op("_moe_permute_mask_map", direction=BPROP, flops=48, bytes=144)
def te_permute_function_backward(a: Args) -> Work:
    """The gradients of a token's rows, added up."""
    work = te_permute_function(a)
    (rows,), x = work.writes, a.tensor("input")
    return Work(rows.numel, (rows,), (like(x),))


# 8 rows added to 4: 48; 48 read and 24 written of 2 bytes, 8 * 4 indices of 8
@op(
    "_moe_unpermute_mask_map",
    signature="Tensor input, Tensor indices, Tensor? weights",
    example=Example((_ROWS, i64(8, 4), None), flops=48, bytes=400, mod=""),
)
# each weighed: 2 * 48; 8 indices and 8 weights of 4
@op(
    *("_moe_unpermute", "_moe_unpermute_index_map"),
    signature="Tensor input, Tensor indices, Tensor? weights",
    example=Example((_ROWS, _INDICES, _CHOSEN), flops=96, bytes=208, mod=""),
)
def te_unpermute_function(a: Args) -> Work:
    """The outputs of a token's experts, weighted if there are weights, added up."""
    x, indices, weights = a.tensor("input"), a.tensor("indices"), a.present("weights")
    # a map was [experts, tokens], and is now [tokens, indices]
    by_experts = not weights and "mask" in a.op and indices.dtype == "int64"
    tokens = size(indices, -1) if by_experts else size((*weights, indices)[0], 0)
    out = like(x, (tokens, size(x, -1)))
    return Work((1 + bool(weights)) * x.numel, (x, indices, *weights), (out,))


# 24 read, 48 written of 2 bytes and 8 * 4 indices of 8
@op("_moe_unpermute_mask_map", direction=BPROP, flops=0, bytes=400)
def te_unpermute_function_backward(a: Args) -> Work:
    """The gradient of each token's row, once for each choice; of weights, too, if given."""
    work = te_unpermute_function(a)
    (out,), x, weights = work.writes, a.tensor("input"), a.present("weights")
    forward = (x, *weights) if weights else ()
    reads = (out, a.tensor("indices"), *forward)
    return Work(3 * x.numel * bool(weights), reads, (like(x), *map(like, weights)))
