"""Student's t distribution, for arrays: p-values and quantiles."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyprof.arrays import Floats

_STEPS = 200
_TINY = 1e-300
_CLOSE = 1e-14


def two_sided_p(t: Floats, freedom: Floats) -> Floats:
    """Return the probability of a value at least as far from 0 as `t`, by degrees of freedom.

    It is the regularised incomplete beta function I_x(freedom/2, 1/2) at x = freedom/(freedom+t²).
    """
    t, freedom = np.broadcast_arrays(np.asarray(t, float), np.asarray(freedom, float))
    with np.errstate(over="ignore", divide="ignore"):
        x = freedom / (freedom + t * t)
        rest = 1 / (1 + freedom / (t * t))  # 1 - x would lose the digits of a small t
    a, b = freedom / 2, np.full(freedom.shape, 0.5)
    swapped = x > (a + 1) / (a + b + 2)  # the fraction converges quickly below
    p = _beta(np.where(swapped, b, a), np.where(swapped, a, b), np.where(swapped, rest, x))
    return np.clip(np.where(swapped, 1 - p, p), 0.0, 1.0)


def _beta(a: Floats, b: Floats, x: Floats) -> Floats:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method."""
    with np.errstate(divide="ignore"):
        log_front = _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b)
        log_front = log_front + a * np.log(x) + b * np.log1p(-x)
    c, d = np.ones(x.shape), _inverse(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = _inverse(1 + term * d), _apart(1 + term * _inverse(c))
            fraction = fraction * d * c
        if np.all(np.abs(d * c - 1) < _CLOSE):
            break
    return np.where(x <= 0, 0.0, np.exp(log_front) * fraction / a)


def _apart(value: Floats) -> Floats:
    return np.where(np.abs(value) < _TINY, _TINY, value)


def _inverse(value: Floats) -> Floats:
    return np.asarray(1 / _apart(value))


def _log_gamma(values: Floats) -> Floats:
    distinct, index = np.unique(values, return_inverse=True)
    logs = np.array([math.lgamma(value) for value in distinct.tolist()])
    return logs[index].reshape(values.shape)


def quantile(level: float, freedom: Floats) -> Floats:
    """Return the t beyond which, on both sides, `1 - level` of the probability lies."""
    inverse, t = _table(level)
    return np.interp(1 / np.maximum(freedom, 1.0), inverse, t)


@cache
def _table(level: float) -> tuple[Floats, Floats]:
    """Tabulate the quantile by the inverse of the degrees of freedom, along which it is smooth."""
    inverse = np.linspace(1e-6, 1.0, 2000)
    low, high = np.zeros(len(inverse)), np.full(len(inverse), 1e5)
    for _ in range(60):
        middle = (low + high) / 2
        beyond = two_sided_p(middle, 1 / inverse) > 1 - level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return inverse, (low + high) / 2
