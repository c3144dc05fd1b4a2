"""Calls of ops whose FLOPs the sweep compares: each a line of Python, forward and backward.

As a script it runs them, each inside a range of its own name. `pyprof capture` records that, or
torch.profiler alone with `--trace FILE`.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import nn
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType

    Maker = Callable[[], Any]


class Case(NamedTuple):
    """One call: how it is set up, and what is called."""

    name: str
    source: str
    backward: bool


def _normal(*shape: int) -> Maker:
    return lambda: torch.randn(shape)


def _definite() -> torch.Tensor:
    square = torch.randn(32, 32)
    return square @ square.T + 32 * torch.eye(32)


FLOATING: dict[str, Maker] = {
    **dict.fromkeys(("x", "y", "z"), _normal(64, 48)),
    "col": _normal(64, 1),
    "row": _normal(48),
    "one": _normal(1),
    **dict.fromkeys(("p", "p2"), lambda: torch.rand(64, 48) * 0.8 + 0.1),
    **dict.fromkeys(("m", "n"), _normal(32, 32)),
    "spd": _definite,
    "tri": lambda: torch.tril(_definite()),
    "rhs": _normal(32, 8),
    "ba": _normal(4, 16, 32),
    "bb": _normal(4, 32, 24),
    "bc": _normal(4, 16, 24),
    "sig": _normal(2, 8, 40),
    "img": _normal(2, 8, 12, 12),
    "vol": _normal(2, 4, 6, 8, 8),
    "w1": _normal(16, 8, 5),
    "w2": _normal(16, 8, 3, 3),
    "wg": _normal(16, 2, 3, 3),
    "w3": _normal(8, 4, 3, 3, 3),
    "wt1": _normal(8, 16, 5),
    "wt2": _normal(8, 16, 3, 3),
    "wt3": _normal(4, 8, 3, 3, 3),
    "b16": _normal(16),
    "b8": _normal(8),
    **dict.fromkeys(("q", "k", "v"), _normal(2, 4, 24, 16)),
    "table": _normal(100, 32),
    "seq": _normal(10, 4, 16),
    "tokens": _normal(4, 10, 32),
}
"""Tensors that require gradients."""

FIXED: dict[str, Maker] = {
    **dict.fromkeys(("h", "g"), lambda: torch.randint(1, 9, (64, 48))),
    "b": lambda: torch.rand(64, 48) > 0.5,  # noqa: PLR2004 - half of them
    "at": lambda: torch.randint(0, 48, (64,)),
    "pick": lambda: torch.randint(0, 64, (20,)),
    "spread": lambda: torch.randint(0, 48, (64, 10)),
    "mask": _normal(24, 24),
    "ids": lambda: torch.randint(0, 100, (16, 10)),
    "cplx": lambda: torch.randn(64, 48, dtype=torch.complex64),
    "cmat": lambda: torch.randn(32, 32, dtype=torch.complex64),
    **dict.fromkeys(("params", "grads"), lambda: [torch.randn(20, 30) for _ in range(3)]),
}


MODULES: dict[str, Maker] = {
    "layer_norm": lambda: nn.LayerNorm(48),
    "batch_norm1": lambda: nn.BatchNorm1d(48),
    "batch_norm2": lambda: nn.BatchNorm2d(8),
    "group_norm": lambda: nn.GroupNorm(2, 8),
    "rms_norm": lambda: nn.RMSNorm(48),
    "wide": lambda: nn.Linear(48, 4096),
    "narrow": lambda: nn.Linear(48, 10, bias=False),
    "pointwise": lambda: nn.Conv2d(8, 6, 1),
    "depthwise": lambda: nn.Conv1d(8, 8, 3, groups=8),
    "attention": lambda: nn.MultiheadAttention(32, 4),
    "attention_batch": lambda: nn.MultiheadAttention(32, 4, batch_first=True),
    "encoder": lambda: nn.TransformerEncoderLayer(32, 4, 64),
    "encoder_batch": lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True),
    "decoder": lambda: nn.TransformerDecoderLayer(32, 4, 64),
    "rnn": lambda: nn.RNN(16, 24),
    "lstm": lambda: nn.LSTM(16, 24),
    "lstm_both": lambda: nn.LSTM(16, 24, 2, bidirectional=True),
    "lstm_projected": lambda: nn.LSTM(16, 24, proj_size=8),
    "gru": lambda: nn.GRU(16, 24),
    "gru_two": lambda: nn.GRU(16, 24, 2, batch_first=True),
    "rnn_relu": lambda: nn.RNN(16, 24, nonlinearity="relu"),
    "lstm_cell": lambda: nn.LSTMCell(16, 24),
    "gru_cell": lambda: nn.GRUCell(16, 24),
    "rnn_cell": lambda: nn.RNNCell(16, 24),
    "mse": nn.MSELoss,
    "cross_entropy": nn.CrossEntropyLoss,
    "embedding": lambda: nn.Embedding(100, 32),
    "encoder_exact": lambda: nn.TransformerEncoderLayer(32, 4, 64, 0.0),
    "sparse": lambda: torch.eye(32).to_sparse(),
    "convolutions": lambda: nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)),
}


def tensors(names: set[str], *, grad: bool) -> dict[str, Any]:
    """Make the tensors and modules that a line names, always with the same values."""
    torch.manual_seed(0)
    found: dict[str, Any] = {}
    for name in sorted(names & FLOATING.keys()):
        leaf = FLOATING[name]().detach()
        found[name] = leaf.requires_grad_().clone() if grad else leaf  # leaves take no in-place op
    made = FIXED | MODULES
    return found | {name: made[name]() for name in sorted(names & made.keys())}


def _each(template: str, names: str) -> list[str]:
    return [template.format(name) for name in names.split()]


BOTH = [
    *_each(
        "torch.{}(x)",
        "abs neg exp exp2 expm1 sin cos tanh sigmoid erf erfc tan sinh cosh square "
        "sinc relu selu celu atan asinh deg2rad rad2deg nan_to_num clone "
        "frac positive",
    ),
    *_each(
        "torch.{}(p)",
        "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma logit asin acos "
        "atanh erfinv i0 acosh",
    ),
    *_each("torch.special.{}(p)", "entr log_ndtr ndtri erfcx i1 i0e i1e"),
    *_each(
        "F.{}(x)",
        "relu6 elu leaky_relu hardtanh hardsigmoid hardswish gelu silu mish softplus softsign "
        "tanhshrink logsigmoid softshrink hardshrink",
    ),
    'F.gelu(x, approximate="tanh")',
    "F.threshold(x, 0.1, 0.0)",
    "F.prelu(x, row)",
    "F.prelu(x, one)",
    "F.glu(x)",
    "F.rrelu(x, training=True)",
    "F.normalize(x)",
    "F.cosine_similarity(x, y)",
    "F.pairwise_distance(x, y)",
    "F.pixel_shuffle(img, 2)",
    "F.pixel_unshuffle(img, 2)",
    *_each("torch.{}(x, y)", "add sub mul maximum minimum fmax fmin atan2 hypot"),
    *_each("torch.{}(p, p2)", "div pow xlogy logaddexp logaddexp2 copysign ldexp float_power"),
    "torch.remainder(x, p)",
    "torch.fmod(x, p)",
    "torch.add(x, y, alpha=2)",
    "x + 1",
    "x * 2.5",
    "x - col",
    "x / row",
    "1 / p",
    "2 ** x",
    "p ** 0.5",
    "x ** 2",
    "x ** 3",
    "x * row",
    "x + col",
    "torch.rsub(x, 1)",
    "torch.addcmul(x, y, z)",
    "torch.addcdiv(x, y, p)",
    "torch.lerp(x, y, 0.3)",
    "torch.lerp(x, y, p)",
    "torch.where(b, x, y)",
    "x.masked_fill(b, 0.0)",
    "torch.clamp(x, -1, 1)",
    "torch.clamp(x, min=0)",
    "torch.clamp(x, max=1)",
    *_each(
        "x.{}",
        "mul_(2) add_(y) sub_(y) div_(2) relu_() tanh_() sigmoid_() exp_() neg_() abs_() "
        "mul_(row) clamp_(-1,1) addcmul_(y,z) pow_(2) sqrt_()",
    ),
    # reductions
    *_each("x.{}()", "sum mean prod amax amin var std norm max min nansum"),
    *_each("x.{}(1)", "sum mean prod amax amin var std max min logsumexp median cumsum"),
    *_each("x.{}(0)", "sum mean logcumsumexp cummax cumprod"),
    "torch.var_mean(x, 1)",
    "torch.std_mean(x, 0)",
    "x.norm(2, 1)",
    "x.norm(1)",
    "torch.linalg.vector_norm(x)",
    "torch.linalg.vector_norm(x, dim=1)",
    "torch.linalg.norm(x)",
    "x.sum((0, 1))",
    "x.sum(1, keepdim=True)",
    "x.mean((0, 1), keepdim=True)",
    "torch.aminmax(x)",
    "torch.logsumexp(x, (0, 1))",
    "torch.diff(x)",
    "torch.trapezoid(x)",
    "torch.renorm(x, 2, 0, 1.0)",
    "torch.dist(x, y)",
    "torch.trace(m)",
    # softmax and norms
    "F.softmax(x, 1)",
    "F.softmax(x, 0)",
    "F.log_softmax(x, 1)",
    "F.softmin(x, 1)",
    "F.layer_norm(x, (48,))",
    "F.layer_norm(x, (48,), row, row)",
    "F.rms_norm(x, (48,))",
    "F.rms_norm(x, (48,), row)",
    "F.group_norm(img, 4)",
    "F.group_norm(img, 4, b8, b8)",
    "F.batch_norm(img, None, None, b8, b8, training=True)",
    "F.batch_norm(img, None, None, training=True)",
    "F.batch_norm(img, torch.zeros(8), torch.ones(8), b8, b8)",
    "F.instance_norm(img)",
    "F.instance_norm(img, weight=b8, bias=b8)",
    "F.local_response_norm(img, 3)",
    "layer_norm(x)",
    "batch_norm1(x)",
    "batch_norm2(img)",
    "group_norm(img)",
    "rms_norm(x)",
    # products
    "torch.mm(m, n)",
    "x @ y.T",
    "x @ row",
    "torch.mv(x, row)",
    "torch.dot(row, row)",
    "torch.inner(x, y)",
    "torch.outer(row, row)",
    "torch.bmm(ba, bb)",
    "torch.matmul(ba, bb)",
    "torch.matmul(ba, m)",
    "torch.addmm(m, m, n)",
    "torch.addmv(row, y.T, x[:, 0])",
    "torch.addr(m, m[0], m[1])",
    "torch.baddbmm(bc, ba, bb)",
    "torch.addbmm(bc[0], ba, bb)",
    "torch.einsum('bij,bjk->bik', ba, bb)",
    "torch.einsum('ij,ij->i', x, y)",
    "torch.einsum('bij,jk->bik', ba, m)",
    "torch.tensordot(x, y, dims=([0], [0]))",
    "torch.kron(m, n)",
    "torch.linalg.multi_dot([x, y.T, z])",
    "torch.chain_matmul(m, n, m)",
    "torch.linalg.matrix_power(m, 5)",
    "torch.bilinear(x, y, torch.ones(4, 48, 48), None)",
    "F.linear(x, y)",
    "F.linear(x, y, torch.zeros(64))",
    "F.linear(tokens, m)",
    "F.bilinear(x, y, torch.ones(4, 48, 48))",
    "F.bilinear(x, y[:, :8], torch.ones(4, 48, 8))",
    "wide(x)",
    "narrow(x)",
    # convolutions
    "F.conv1d(sig, w1)",
    "F.conv1d(sig, w1, b16, stride=2, padding=2)",
    "F.conv2d(img, w2)",
    "F.conv2d(img, w2, b16, padding=1)",
    "F.conv2d(img, w2, stride=2)",
    "F.conv2d(img, w2, dilation=2)",
    "F.conv2d(img, wg, groups=4)",
    "F.conv2d(img, w2, padding='same')",
    "F.conv3d(vol, w3)",
    "F.conv3d(vol, w3, b8, padding=1)",
    "F.conv_transpose1d(sig, wt1)",
    "F.conv_transpose2d(img, wt2)",
    "F.conv_transpose2d(img, wt2, stride=2, padding=1)",
    "F.conv_transpose3d(vol, wt3)",
    "pointwise(img)",
    "depthwise(sig)",
    # attention
    "F.scaled_dot_product_attention(q, k, v)",
    "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
    "F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)",
    "F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)",
    "attention(tokens, tokens, tokens)[0]",
    "attention_batch(tokens, tokens, tokens, need_weights=False)[0]",
    "encoder(tokens)",
    "encoder_batch(tokens)",
    "decoder(tokens, tokens)",
    # recurrence
    *_each("{}(seq)[0]", "rnn lstm lstm_both lstm_projected gru gru_two rnn_relu"),
    "lstm_cell(seq[0])[0]",
    "gru_cell(seq[0])",
    "rnn_cell(seq[0])",
    # losses
    *_each("F.{}(x, y)", "mse_loss l1_loss smooth_l1_loss huber_loss poisson_nll_loss"),
    "F.mse_loss(x, y, reduction='none')",
    "F.mse_loss(x, y, reduction='sum')",
    "F.huber_loss(x, y, reduction='sum')",
    "F.cross_entropy(x, at)",
    "F.cross_entropy(x, at, reduction='sum')",
    "F.cross_entropy(x, at, label_smoothing=0.1)",
    "F.cross_entropy(x, p.detach())",
    "F.nll_loss(x, at)",
    "F.soft_margin_loss(x, y.detach())",
    "F.kl_div(x, p)",
    "F.kl_div(x, y, log_target=True)",
    "F.binary_cross_entropy(p, p2.detach())",
    "F.binary_cross_entropy_with_logits(x, p.detach())",
    "F.binary_cross_entropy_with_logits(x, p.detach(), pos_weight=row.detach().abs())",
    "F.gaussian_nll_loss(x, y, p)",
    "F.hinge_embedding_loss(x, torch.ones(64, 48))",
    "F.margin_ranking_loss(x, y, torch.ones(64, 48))",
    "F.cosine_embedding_loss(x, y, torch.ones(64))",
    "F.triplet_margin_loss(x, y, z)",
    "F.multi_margin_loss(x, at)",
    "F.multilabel_soft_margin_loss(x, p.detach())",
    "mse(x, y)",
    "cross_entropy(x, at)",
    # pooling, interpolation, padding
    "F.max_pool1d(sig, 2)",
    "F.max_pool2d(img, 2)",
    "F.max_pool2d(img, 3, stride=1, padding=1)",
    "F.max_pool3d(vol, 2)",
    "F.avg_pool1d(sig, 2)",
    "F.avg_pool2d(img, 2)",
    "F.avg_pool3d(vol, 2)",
    "F.adaptive_avg_pool1d(sig, 5)",
    "F.adaptive_avg_pool2d(img, 1)",
    "F.adaptive_avg_pool2d(img, 3)",
    "F.adaptive_max_pool2d(img, 3)",
    "F.lp_pool2d(img, 2, 2)",
    "F.interpolate(img, scale_factor=2)",
    "F.interpolate(img, scale_factor=2, mode='bilinear')",
    "F.interpolate(img, size=(20, 20), mode='bicubic')",
    "F.interpolate(sig, scale_factor=2, mode='linear')",
    "F.interpolate(vol, scale_factor=2, mode='trilinear')",
    "F.interpolate(img, size=(6, 6), mode='area')",
    "F.grid_sample(img, torch.zeros(2, 5, 5, 2), align_corners=False)",
    "F.grid_sample(img, torch.zeros(2, 5, 5, 2) * one, 'nearest', align_corners=False)",
    "F.grid_sample(img, torch.zeros(2, 5, 5, 2) * one, 'bicubic', align_corners=False)",
    "F.affine_grid(torch.ones(2, 2, 3) * one, (2, 8, 12, 12), align_corners=False)",
    "F.unfold(img, 3)",
    "F.fold(torch.ones(2, 18, 100) * one, (12, 12), 3)",
    "F.pad(img, (1, 1, 1, 1))",
    "F.pad(img, (1, 1, 1, 1), mode='reflect')",
    "F.pad(img, (1, 1, 1, 1), mode='replicate')",
    "F.pad(img, (1, 1, 1, 1), mode='circular')",
    # rearranging and picking
    "torch.cat([x, y])",
    "torch.stack([x, y])",
    "torch.hstack([x, y])",
    "x.repeat(2, 3)",
    "torch.tile(x, (2, 1))",
    "x.repeat_interleave(2, 0)",
    "x.roll(3, 0)",
    "x.flip(0)",
    "torch.rot90(m)",
    "x.T.contiguous()",
    "x.T.reshape(-1)",
    "torch.tril(m)",
    "torch.triu(m)",
    "torch.diag(row)",
    "torch.diagonal(m).clone()",
    "torch.block_diag(m, n)",
    "torch.cartesian_prod(row, row)",
    "x.expand(3, 64, 48).contiguous()",
    "x.to(torch.float64)",
    "x.half()",
    "x[pick]",
    "x[:, 3:9].clone()",
    "x[b]",
    "x.index_select(0, pick)",
    "x.gather(1, spread)",
    "torch.take(x, pick)",
    "torch.take_along_dim(x, spread, 1)",
    "x.masked_select(b)",
    "x.scatter(1, spread, y[:, :10])",
    "x.scatter_add(1, spread, y[:, :10])",
    "x.scatter_reduce(1, spread, y[:, :10], 'sum')",
    "x.index_add(0, pick, y[:20])",
    "x.index_copy(0, pick, y[:20])",
    "x.index_fill(0, pick, 1.0)",
    "x.index_put((pick,), y[:20], accumulate=True)",
    "x.masked_scatter(b, y)",
    "torch.sort(x, 1)",
    "torch.topk(x, 5)",
    "torch.kthvalue(x, 3)",
    "torch.cdist(x, y)",
    "torch.cdist(x, y, p=1.0)",
    "torch.cdist(torch.cat([x, y]), torch.cat([y, x]))",
    "F.pdist(x)",
    "F.embedding(ids, table)",
    "F.embedding(ids, table, padding_idx=0)",
    "F.embedding_bag(ids, table)",
    "F.embedding_bag(ids, table, mode='sum')",
    "F.embedding_bag(ids, table, mode='sum', per_sample_weights=torch.ones(16, 10) * one)",
    "embedding(ids)",
    "F.dropout(x, 0.5)",
    "F.dropout2d(img, 0.5)",
    "F.alpha_dropout(x, 0.5, training=True)",
    "F.dropout(x, 0.5, training=False) + 0",
    # linear algebra
    *_each("torch.linalg.{}(spd)", "inv det slogdet"),
    "torch.logdet(spd)",
    "torch.linalg.cholesky(spd)",
    "torch.cholesky_solve(rhs, tri)",
    "torch.cholesky_inverse(tri)",
    "torch.linalg.solve(spd, rhs)",
    "torch.linalg.solve_triangular(tri, rhs, upper=False)",
    "torch.triangular_solve(rhs, tri, upper=False)",
    "torch.linalg.qr(m)",
    "torch.linalg.lu(spd)",
    "torch.linalg.lu_factor(spd)",
    "torch.linalg.eigh(spd)",
    "torch.linalg.svd(m)",
    "torch.linalg.svdvals(m)",
    "torch.linalg.eigvalsh(spd)",
    "torch.linalg.pinv(m)",
    "torch.linalg.matrix_norm(m)",
    "torch.linalg.matrix_norm(m, 'nuc')",
    "torch.linalg.matrix_norm(m, 1)",
    "torch.matrix_exp(m)",
    "torch.linalg.lstsq(spd, rhs).solution",
    "torch.linalg.cross(x[:, :3], y[:, :3])",
    "torch.linalg.vander(row[:5])",
    # transforms
    *_each("torch.fft.{}(x)", "fft rfft fft2 rfft2"),
    "torch.fft.irfft(torch.complex(x, y))",
    "torch.fft.ifft(torch.complex(x, y))",
    "torch.fft.fftn(vol)",
    "torch.stft(x, 16, return_complex=True, window=torch.ones(16))",
    # functions over functions
    "checkpoint(lambda a: torch.sin(a @ y.T) * 2, x, use_reentrant=False)",
    "checkpoint(lambda a: torch.tanh(torch.tanh(a) @ y.T), x, use_reentrant=False)",
    "checkpoint(lambda a: F.linear(F.relu(a), y), x, use_reentrant=False)",
    "checkpoint(lambda a: F.linear(F.relu(a), y), x, use_reentrant=True)",
    "checkpoint(lambda a: a.exp() * a.sin() * a, x, use_reentrant=False)",
    "checkpoint(lambda a: F.softmax(a @ y.T, 1), x, use_reentrant=False)",
    "checkpoint(encoder_exact, tokens, use_reentrant=False)",
    "checkpoint(convolutions, img, use_reentrant=False)",
    "torch.vmap(torch.sin)(x)",
    "torch.vmap(lambda a: a @ m)(ba)",
    "torch.vmap(lambda a: (a * 2).sum())(x)",
    "torch.vmap(torch.dot)(x, y)",
    "torch.vmap(lambda a: F.softmax(a, 0))(x)",
    "torch.vmap(lambda a: F.layer_norm(a, (48,)))(x)",
    "torch.vmap(torch.vmap(torch.tanh))(ba)",
    "torch.vmap(F.linear, in_dims=(0, None))(tokens, m)",
    "torch.vmap(lambda a: F.conv2d(a[None], w2))(img)",
    "torch.vmap(torch.linalg.inv)(torch.stack([spd, spd]))",
]

ONLY_FORWARD = [
    *_each(
        "torch.{}(x)",
        "sign ceil floor round trunc isnan isfinite isinf signbit logical_not argmax argmin any "
        "all count_nonzero histc angle sgn msort argsort nonzero",
    ),
    *_each(
        "torch.{}(x, y)",
        "eq ne lt le gt ge isclose logical_and logical_or logical_xor "
        "nextafter heaviside floor_divide allclose equal",
    ),
    *_each(
        "torch.{}(h, g)",
        "gcd lcm bitwise_and bitwise_or bitwise_xor add mul floor_divide "
        "remainder bitwise_left_shift",
    ),
    "torch.bitwise_not(h)",
    "h.sum()",
    "h.float()",
    "torch.bincount(h.flatten())",
    "torch.unique(h)",
    "torch.searchsorted(row.sort().values, x)",
    "torch.bucketize(x, row.sort().values)",
    "torch.quantile(x, 0.5)",
    "torch.cov(x)",
    "torch.corrcoef(x)",
    "torch.mode(x)",
    *_each(
        "x.{}", "zero_() fill_(1.0) normal_() uniform_() bernoulli_(0.5) exponential_() copy_(y)"
    ),
    "torch.zeros(64, 48)",
    "torch.ones_like(x)",
    "torch.full((64, 48), 2.0)",
    "torch.arange(1000)",
    "torch.linspace(0, 1, 1000)",
    "torch.eye(32)",
    "torch.rand(64, 48)",
    "torch.randint(0, 9, (64, 48))",
    "torch.randperm(1000)",
    "torch.multinomial(p, 5)",
    "torch.poisson(p)",
    "torch.bernoulli(p)",
    "F.one_hot(at, 48)",
    "torch.tril_indices(32, 32)",
    "torch.combinations(row, 2)",
    "torch.linalg.matrix_rank(m)",
    "torch.linalg.eigvals(m)",
    "torch.linalg.cond(m)",
    "torch.linalg.ldl_factor(spd)[0]",
    "cplx * cplx",
    "cplx + cplx",
    "cplx.abs()",
    "cplx.conj().resolve_conj()",
    "cmat @ cmat",
    "torch.fft.fft(cplx)",
    "torch.fft.fftshift(cplx)",
    "torch.view_as_real(cplx).clone()",
    "x.half() * y.half()",
    "x.bfloat16() @ y.bfloat16().T",
    "auto(lambda: F.linear(x, y))",
    "auto(lambda: (x @ y.T).softmax(1))",
    "auto(lambda: F.mse_loss(x, y))",
    "torch.func.grad(lambda a: (a ** 2).sum())(x)",
    "torch.func.grad(lambda a: torch.tanh(a @ y.T).sum())(x)",
    "torch.func.vmap(torch.func.grad(lambda a: torch.tanh(a @ m).sum()))(ba)",
    "each(lambda w, a: (F.linear(a, w) ** 2).sum())(m, ba)",
    "each(lambda w, a: F.cross_entropy(F.linear(a, w), at[0] % 32))(m, tokens[0])",
    "each(lambda w, a: F.conv2d(a[None], w).sum())(w2, img)",
    "torch.func.jvp(lambda a: torch.sin(a) * a, (x,), (y,))",
    "torch.func.vjp(lambda a: a @ y.T, x)[1](torch.ones(64, 64))",
    "torch.func.jacrev(lambda a: torch.tanh(a))(row)",
    "torch.func.hessian(lambda a: (a ** 3).sum())(row)",
    *_each(
        "step({})",
        "torch.optim.SGD,lr=0.1 torch.optim.SGD,lr=0.1,momentum=0.9 "
        "torch.optim.SGD,lr=0.1,foreach=True torch.optim.SGD,lr=0.1,momentum=0.9,fused=True "
        "torch.optim.Adam,foreach=True torch.optim.Adam,foreach=False torch.optim.Adam,fused=True "
        "torch.optim.AdamW,foreach=True torch.optim.AdamW,fused=True torch.optim.Adagrad "
        "torch.optim.RMSprop torch.optim.RMSprop,foreach=True torch.optim.Adadelta "
        "torch.optim.Adagrad,fused=True torch.optim.NAdam torch.optim.RAdam torch.optim.Adamax",
    ),
    "torch.sparse.mm(sparse, m)",
    "torch._foreach_add(params, grads)",
    "torch._foreach_mul_(params, 2.0)",
    "torch._foreach_sqrt([a.abs() for a in params])",
    "torch._foreach_norm(params)",
    "torch._foreach_addcdiv_(params, grads, [a.abs() + 1 for a in grads])",
    "torch._foreach_lerp_(params, grads, 0.1)",
    "nn.utils.clip_grad_norm_(clipped(params, grads), 1.0)",
]


def _names(code: CodeType) -> set[str]:
    inner = [_names(const) for const in code.co_consts if hasattr(const, "co_names")]
    return set(code.co_names).union(*inner)


def _scope(code: CodeType, *, grad: bool) -> dict[str, Any]:
    """Return what a line names."""
    asked = _names(code)
    if asked & {"step"}:
        asked |= {"params", "grads"}
    names = tensors(asked, grad=grad)

    def auto(call: Callable[[], Any]) -> Any:  # noqa: ANN401
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return call()

    def clipped(values: list[torch.Tensor], grads: list[torch.Tensor]) -> list[torch.Tensor]:
        for value, given in zip(values, grads, strict=True):
            value.grad = given
        return values

    def step(kind: Any, **options: Any) -> None:  # noqa: ANN401
        kind(clipped(names["params"], names["grads"]), **options).step()

    def each(loss: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function's gradient for each sample."""
        return torch.func.vmap(torch.func.grad(loss), (None, 0))

    modules = {"torch": torch, "F": F, "nn": nn, "checkpoint": checkpoint}
    return names | modules | {"auto": auto, "clipped": clipped, "each": each, "step": step}


def cases() -> Iterator[Case]:
    """Yield every case, with a unique name."""
    for number, source in enumerate((*BOTH, *ONLY_FORWARD)):
        yield Case(f"case {number:03} forward", source, backward=False)
        if number < len(BOTH):
            yield Case(f"case {number:03} backward", source, backward=True)


def prepared(case: Case) -> Callable[[], Any]:
    """Set a case up; return a function that makes the call, or its backward pass."""
    code = compile(case.source, f"<{case.name}>", "eval")
    names = _scope(code, grad=case.backward)
    if not case.backward:
        return lambda: eval(code, names)  # noqa: S307 - our own lines
    found = eval(code, names)  # noqa: S307
    outputs = [out for out in _leaves(found) if out.requires_grad]
    ones = [torch.ones_like(out) for out in outputs]
    if not outputs:
        raise TypeError("nothing to go back from")
    return lambda: torch.autograd.backward(outputs, ones)


def _leaves(value: Any) -> list[torch.Tensor]:  # noqa: ANN401
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else []


def run(chosen: Sequence[Case]) -> None:
    """Run each case inside a range of its name."""
    warnings.simplefilter("ignore")
    for case in chosen:
        call = prepared(case)
        with torch.profiler.record_function(case.name):
            call()


def traced(chosen: Sequence[Case], path: Path) -> None:
    """Run cases under torch.profiler alone; write its trace."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profiler:
        run(chosen)
    profiler.export_chrome_trace(str(path))


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose line holds this")
    parser.add_argument("--trace", type=Path, help="write a trace of torch.profiler alone")
    options = parser.parse_args()
    chosen = [case for case in cases() if options.only in case.source]
    if options.trace is None:
        run(chosen)
    else:
        traced(chosen, options.trace)


if __name__ == "__main__":
    main()
