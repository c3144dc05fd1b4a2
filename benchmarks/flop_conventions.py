"""FLOPs of calls that are not the sum of what their ops compute one by one, and why.

Each number is worked out here from sizes, by the definitions of docs/numbers.md; None is unknown.
"""

from __future__ import annotations

N, ROWS = 64 * 48, 64
ROOT = 20

FORWARD: dict[str, int | None] = {
    # An op that PyTorch puts together from others, by what it computes in an element.
    "1 / p": N,
    "torch.isfinite(x)": N,
    "torch.isclose(x, y)": 6 * N,  # abs(a - b) <= atol + rtol * abs(b)
    "F.rms_norm(x, (48,))": 3 * N,
    "F.rms_norm(x, (48,), row)": 4 * N,
    "rms_norm(x)": 4 * N,
    # A mean of k numbers is k - 1 additions and a division; counted as k and one.
    "F.l1_loss(x, y)": 3 * N + 1,
    "F.poisson_nll_loss(x, y)": 23 * N + 1,
    "F.kl_div(x, p)": 24 * N + 1,
    "F.kl_div(x, y, log_target=True)": 23 * N + 1,
    # Losses as though one kernel did each.
    "F.cross_entropy(x, at, label_smoothing=0.1)": 25 * N + 2 * ROWS + 1,
    "F.cross_entropy(x, p.detach())": 26 * N + ROWS + 1,
    "F.hinge_embedding_loss(x, torch.ones(64, 48))": 4 * N + 1,
    "F.margin_ranking_loss(x, y, torch.ones(64, 48))": 5 * N + 1,
    "F.cosine_embedding_loss(x, y, torch.ones(64))": 6 * N + (25 + 1) * ROWS + 1,
    "F.triplet_margin_loss(x, y, z)": 6 * N + (43 + 1) * ROWS + 1,
    # Attention is its two products.
    "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)": 2 * 8 * 24 * 24 * 32,
    "F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)": 2 * 8 * 24 * 24 * 32,
    # The addition of a linear's bias is not counted, even where it is an op of its own.
    "attention_batch(tokens, tokens, tokens, need_weights=False)[0]": 2 * 40 * 32 * 128 + 51200,
    # Projections, attention, the network behind it; dropouts, norms, sums, a relu.
    "encoder(tokens)": (
        2 * 40 * 32 * (128 + 128) + 2 * 10 * 4 * 16 * 16 + 3 * (2 * 1280 + 2560) + 18 * 1280 + 2560
    ),
    "encoder_batch(tokens)": (2 * 40 * 32 * (128 + 128) + 2 * 4 * 4 * 100 * 16 + 18 * 1280 + 2560),
    "decoder(tokens, tokens)": (
        2 * 40 * 32 * (256 + 128)
        + 2 * (2 * 10 * 4 * 16 * 16)
        + 3 * (3 * 1280 + 2560)
        + 27 * 1280
        + 2560
    ),
    # A step of four sequences: three gates of 24, with 68 operations an element.
    "gru(seq)[0]": 40 * (2 * 72 * (16 + 24) + 68 * 24),
    "gru_two(seq)[0]": 40 * (2 * 72 * (16 + 24 + 48) + 2 * 68 * 24),
    "gru_cell(seq[0])": 4 * (2 * 72 * (16 + 24) + 68 * 24),
    # Bilinear: a product with each of the matrices, and a dot product.
    "torch.bilinear(x, y, torch.ones(4, 48, 48), None)": 2 * ROWS * 4 * 48 * (48 + 1),
    "F.bilinear(x, y, torch.ones(4, 48, 48))": 2 * ROWS * 4 * 48 * (48 + 1),
    "F.bilinear(x, y[:, :8], torch.ones(4, 48, 8))": 2 * ROWS * 4 * 8 * (48 + 1),
    # The base's linspaces, a product and a quotient; the matrices' product.
    "F.affine_grid(torch.ones(2, 2, 3) * one, (2, 8, 12, 12), align_corners=False)": (
        12 + 2 * (24 + 12 + 12) + 2 * 288 * 3 * 2
    ),
    # Indices and bounds are no arithmetic on elements.
    "torch.take_along_dim(x, spread, 1)": 0,
    "F.one_hot(at, 48)": 0,
    "torch.combinations(row, 2)": 0,
    "torch.quantile(x, 0.5)": 3,  # sorting counts 0; one interpolation
    "F.embedding_bag(ids, table)": 16 * 10 * 32,
    "F.embedding_bag(ids, table, mode='sum')": 16 * 10 * 32,
    "F.embedding_bag(ids, table, mode='sum', per_sample_weights=torch.ones(16, 10) * one)": (
        2 * 16 * 10 * 32 + 160
    ),
    # Factorisations, by LAPACK Working Note 41: without lower orders.
    "torch.logdet(spd)": 2 * 32**3 // 3,
    "torch.linalg.qr(m)": 2 * (2 * 32**3 - 2 * 32**3 // 3 - 1),  # rounded twice
    "torch.linalg.lstsq(spd, rhs).solution": 2 * 32**3 - 2 * 32**3 // 3 - 1 + 8 * 3 * 32**2,
    "torch.linalg.matrix_norm(m, 1)": 2 * 32**2 + 1,
    "torch.cov(x)": 2 * N + 2 * ROWS * ROWS * 48 + ROWS * ROWS,
    "torch.corrcoef(x)": 2 * N + 2 * ROWS**2 * 48 + ROWS**2 + ROOT * ROWS + 2 * ROWS**2,
    "torch.vmap(torch.linalg.inv)(torch.stack([spd, spd]))": 2 * 2 * 32**3 + 2,  # and two checks
    # Half for real numbers, also where PyTorch makes them complex before.
    "torch.fft.fft2(x)": 88973,
    "torch.fft.fftn(vol)": 88973,
    "nn.utils.clip_grad_norm_(clipped(params, grads), 1.0)": (
        3 * (2 * 600 + ROOT) + 2 * 3 + ROOT + 1 + 1 + 1 + 1800
    ),
    # flop_counter multiplies a filter's gradient by the groups.
    "each(lambda w, a: F.conv2d(a[None], w).sum())(w2, img)": 2 * (2 * 2 * 16 * 100 * 8 * 9)
    + 2 * 16 * 100,
    # Neither scaled nor shifted.
    "x.normal_()": 40 * 64 * 48,
    # A sum with autograd's tensor of zeros is a copy, and a product with it is skipped.
    "torch.func.hessian(lambda a: (a ** 3).sum())(row)": 5 * 48**2 + 9 * 48,
    # Costs that depend on the data are unknown.
    "torch.poisson(p)": None,
    # Markers record the number of stored elements.
    "torch.sparse.mm(sparse, m)": 2 * 32 * 32,
    # Two squares, their sum and a root; the generator's own work is none.
    "cplx.abs()": 64 * 48 * (3 + ROOT),
    "x.uniform_()": 0,
    **dict.fromkeys(
        (
            "torch.linalg.eigh(spd)",
            "torch.linalg.svd(m)",
            "torch.linalg.svdvals(m)",
            "torch.linalg.eigvalsh(spd)",
            "torch.linalg.pinv(m)",
            "torch.linalg.matrix_norm(m, 'nuc')",
            "torch.matrix_exp(m)",
            "torch.linalg.matrix_rank(m)",
            "torch.linalg.eigvals(m)",
            "torch.linalg.cond(m)",
        ),
        None,
    ),
}
BACKWARD: dict[str, int | None] = {
    "torch.nan_to_num(x)": 2 * N,  # a comparison for NaN, times the gradient
    # Outside of dispatch modes PyTorch compares with the result.
    "x.prod()": 3 * N,
    "x.prod(1)": 4 * N + ROWS,
    "x.max()": 2 * N + 2,
    "x.min()": 2 * N + 2,
    "x.cumprod(0)": 5 * N,
    "torch.linalg.vander(row[:5])": 6 * 20,
    "torch.bilinear(x, y, torch.ones(4, 48, 48), None)": (
        4 * (ROWS * 48 * 48 * 3 + N) + 2 * ROWS * 4 * 48 * (48 + 1)
    ),
    "F.bilinear(x, y, torch.ones(4, 48, 48))": (
        4 * (ROWS * 48 * 48 * 3 + N) + 2 * ROWS * 4 * 48 * (48 + 1)
    ),
    "F.bilinear(x, y[:, :8], torch.ones(4, 48, 8))": (
        4 * (ROWS * 48 * 8 * 3 + N) + 2 * ROWS * 4 * 8 * (48 + 1)
    ),
    # flop_counter multiplies a filter's gradient by the groups.
    "F.conv2d(img, wg, groups=4)": 2 * (2 * 2 * 16 * 100 * 2 * 9),
    "depthwise(sig)": 2 * (2 * 2 * 8 * 38 * 3),
    # A pair's difference over its distance, to both rows.
    "F.pdist(x)": 4 * (64 * 63 // 2) * 48,
    # Bags' bounds become an index a row: ones added up, less one, a running sum.
    "F.embedding_bag(ids, table, mode='sum')": 16 * 10 * 32 + 16 + 161 + 1,
    "F.embedding_bag(ids, table, mode='sum', per_sample_weights=torch.ones(16, 10) * one)": (
        4 * 16 * 10 * 32 + 2 * 160 + 16 + 161 + 1
    ),
    # Indices and sizes that depend on the data, or that profilers do not record.
    "torch.matrix_exp(m)": None,
    "torch.linalg.lstsq(spd, rhs).solution": None,
}
