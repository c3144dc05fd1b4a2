"""Tensor operators: `a + b`, `a @ b`, `a[1:]`, comparisons, in-place and reflected forms.

Each is marked as a method of Tensor, with both operands.
"""

from __future__ import annotations

import torch

import pyprof


def main() -> None:
    """Apply each operator once."""
    pyprof.init()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.rand(64, 64, device=device) + 1
    b = torch.rand(64, 64, device=device) + 1
    whole = torch.arange(1, 65, device=device)

    with pyprof.profile():
        results = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, a @ b]
        results += [2 + a, 2 - a, 2 * a, 2 / a, 2**a]
        results += [-a, abs(a), a < b, a <= b, a == b, a != b, a >= b, a > b]
        results += [whole & 3, whole | 3, whole ^ 3, ~whole, whole << 1, whole >> 1]
        results += [a[0], a[1:, ::2], a[a > b], a[:, None]]
        a += b
        a *= 2
        a[0] = 0
    print(f"{len(results) + 3} operators")


if __name__ == "__main__":
    main()
