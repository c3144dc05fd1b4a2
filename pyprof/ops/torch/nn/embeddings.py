"""Embeddings and bags of them: rows of a table selected, or added up bag by bag.

No arithmetic except the additions of bags and of gradients, and products with weights of samples.
Bytes: indices, offsets and weights, the rows that are picked (at most the table), the result;
backward the whole table's gradient, which is dense, or a row for each index if a sparse one is
requested.
"""

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f16, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.indexing import picked
from pyprof.ops.work import SIZE_IN_DATA, Args, Work, fresh, like, size

FAMILY = "embedding"

_TABLE = f16(100, 8)
_IDS = i64(4, 5)
_FLAT = i64(6)
_STARTS = i64(2)
_WEIGHTS = f16(6)
_OPTIONS = "Tensor? per_sample_weights, bool include_last_offset"


# 20 ids of 8 bytes; 20 rows of 8 read and written of 2 bytes: 160 + 320 + 320
@op(
    "torch.nn.functional.embedding",
    signature=(
        "Index input, Tensor weight, int padding_idx, float max_norm, float norm_type, "
        "bool scale_grad_by_freq, bool sparse"
    ),
    example=Example((_IDS, _TABLE), flops=0, bytes=800),
)
@op(
    "embedding",
    signature=("Tensor weight, Index input, int padding_idx, bool scale_grad_by_freq, bool sparse"),
    example=Example((_TABLE, _IDS, -1, False, False), flops=0, bytes=800),
)
def embedding(a: Args) -> Work:
    """A row of the table for each index."""
    ids, table = a.tensor("input"), a.tensor("weight")
    out = like(table, (*ids.shape, *table.shape[1:]))
    return Work(0, (ids, picked(table, out.numel)), (out,))


# 160 additions; 20 ids of 8 bytes, go 160 read, the table's gradient 800 written of 2 bytes
@backward_of(embedding, flops=160, bytes=2080)
def embedding_backward(a: Args) -> Work:
    """Each row's gradient is added to the table's, which is as large as the table."""
    ids, table = a.tensor("input"), a.tensor("weight")
    go = like(table, (*ids.shape, *table.shape[1:]))
    if _asks_for_sparse(a):
        return _sparse_gradient(a, go, ids)
    return Work(go.numel, (ids, go), (like(table),))


def _asks_for_sparse(a: Args) -> bool:
    """Whether the gradient is sparse; if unrecorded it is dense, since kernels ran."""
    return a.known("sparse") and a.flag("sparse", default=False)


def _sparse_gradient(a: Args, go: Tensor, ids: Tensor) -> Work:
    """A gradient that stores a row for each index: the incoming one, except for padding."""
    none = None if a.mod.endswith("functional") else -1  # there, -1 is the last row
    if a.value("padding_idx", none) != none:
        raise Unknown(SIZE_IN_DATA)
    return Work(0, (ids, go), (like(ids), like(go)))


@op(
    *("aten::embedding_dense_backward", "aten::embedding_backward"),
    signature=(
        "Tensor grad_output, Index indices, int num_weights, int padding_idx, "
        "bool scale_grad_by_freq, bool sparse"
    ),
    # as above
    example=Example((f16(4, 5, 8), _IDS, 100, -1, False), flops=160, bytes=2080),
)
# 20 ids of 8 bytes and go's 160 of 2 bytes read, and both written
@op(
    "aten::embedding_sparse_backward",
    signature="Tensor grad_output, Index indices, int num_weights, int padding_idx",
    example=Example((f16(4, 5, 8), _IDS, 100, -1, False), flops=0, bytes=960),
)
def embedding_backward_op(a: Args) -> Work:
    """The same as ATen's own op."""
    go, ids = a.tensor("grad_output"), a.tensor("indices")
    sparse = a.op == "embedding_backward" and _asks_for_sparse(a)
    if sparse or a.op == "embedding_sparse_backward":
        return _sparse_gradient(a, go, ids)
    if not a.known("num_weights"):
        return Work(go.numel, (ids, go), why="num_weights not recorded")
    width = go.shape[-1] if go.shape else 1
    return Work(go.numel, (ids, go), (like(go, (a.integer("num_weights", 0), width)),))


def _bags(a: Args) -> tuple[Tensor, tuple[Tensor, ...], Tensor, Tensor]:
    """Return the table, the indices and where bags begin, the rows picked, and their sums."""
    ids, table, offsets = a.tensor("input"), a.tensor("weight"), a.optional("offsets")
    width = size(table, -1)
    count = size(ids if offsets is None else offsets, 0)
    if offsets is not None and a.flag("include_last_offset", default=False):
        count -= 1
    indices = (ids, *a.present("offsets", "per_sample_weights"))
    return table, indices, like(table, (ids.numel, width)), like(table, (count, width))


# two bags of 3 rows of 8: 48 additions; 6 indices and 2 offsets of 8 bytes, 48 read, 16 written
# of 2 bytes
@op(
    "torch.nn.functional.embedding_bag",
    signature=(
        "Index input, Tensor weight, Index? offsets, float max_norm, float norm_type, "
        f"bool scale_grad_by_freq, str mode, bool sparse, {_OPTIONS}"
    ),
    example=Example((_FLAT, _TABLE, _STARTS), flops=48, bytes=192),
)
@op(
    *("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"),
    signature=(
        "Tensor weight, Index input, Index? offsets, bool scale_grad_by_freq, int mode, "
        f"bool sparse, {_OPTIONS}"
    ),
    # 48 products more, and 6 weights of 2 bytes
    example=Example((_TABLE, _FLAT, _STARTS, False, 0, False, _WEIGHTS), flops=96, bytes=204),
)
def embedding_bag(a: Args) -> Work:
    """The rows of each bag are added, each times its weight if there are weights."""
    table, indices, rows, sums = _bags(a)
    each = 2 if a.given("per_sample_weights") else 1
    return Work(each * rows.numel, (*indices, picked(table, rows.numel)), (sums,))


# the rows' gradients: 48 additions; 6 indices and 2 offsets of 8 bytes, go 16 read, the table's
# gradient 800 written of 2 bytes; with weights 48 products, too, and for the gradients of the
# weights 96 operations: 6 weights and 48 of the table read, 6 written
@op("torch.nn.functional.embedding_bag", direction=BPROP, flops=48, bytes=1696)
@op(*("embedding_bag", "_embedding_bag"), direction=BPROP, flops=192, bytes=1816)
def embedding_bag_backward(a: Args) -> Work:
    """Each bag's gradient is added to the rows that were in it."""
    table, indices, rows, sums = _bags(a)
    weights = a.present("per_sample_weights")
    reads, flops = (*indices, sums), 0
    if weights:
        reads, flops = (*reads, picked(table, rows.numel)), 3 * rows.numel
    if _asks_for_sparse(a):
        return Work(flops, reads, (*weights, like(a.tensor("input")), rows))
    return Work(flops + rows.numel, reads, (*weights, like(table)))


# the same, where each row's bag is known: 48 additions and 48 products; 6 indices and 6 bags of 8
# bytes, go 16 and 6 weights read, the table's gradient 800 written of 2 bytes
@op(
    "aten::_embedding_bag_dense_backward",
    signature=(
        "Tensor grad, Index indices, Index offset2bag, any bag_size, any maximum_indices,"
        "int num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights"
    ),
    example=Example(
        (f16(2, 8), _FLAT, _FLAT, None, None, 100, False, 0, _WEIGHTS), flops=96, bytes=1740
    ),
)
def embedding_bag_dense_backward(a: Args) -> Work:
    """The same as ATen's own op."""
    go, ids = a.tensor("grad"), a.tensor("indices")
    width = size(go, -1)
    reads = (go, ids, a.tensor("offset2bag"), *a.present("per_sample_weights"))
    flops = (len(reads) - 2) * ids.numel * width
    if not a.known("num_weights"):
        return Work(flops, reads, why="num_weights not recorded")
    table = fresh((a.integer("num_weights", 0), width), go.dtype)
    return Work(flops, reads, (table,))


# a product and a sum for each of 48; 6 indices and 2 offsets of 8 bytes, go 16 and 48 of the table
# read, 6 written of 2 bytes
@op(
    "aten::_embedding_bag_per_sample_weights_backward",
    signature="Tensor grad, Tensor weight, Index indices, Index offsets",
    example=Example((f16(2, 8), _TABLE, _FLAT, _STARTS), flops=96, bytes=204),
)
def embedding_bag_weights_backward(a: Args) -> Work:
    """The gradient of each sample's weight: its row times its bag's gradient."""
    go, table, ids = a.tensor("grad"), a.tensor("weight"), a.tensor("indices")
    count = ids.numel * size(table, -1)
    reads = (go, picked(table, count), ids, a.tensor("offsets"))
    return Work(2 * count, reads, (like(go, ids.shape),))
