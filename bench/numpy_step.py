"""Times one exact E-step and EM iteration in batched NumPy, the best form of it that we know, and a
product of matrices: `numpy_step.py N M L`, a line of JSON."""

import json
import sys
import time

import numpy as np


def e_step(y, d, gamma, s):
    """Cholesky, inverse factor and one tall product."""
    n, m = d.shape
    scaled = d[None] * gamma[:, None, :]
    cov = scaled @ d.T + s * np.eye(n)
    inverse = np.linalg.inv(np.linalg.cholesky(cov))
    z = inverse @ scaled
    w = np.einsum("lij,lj->li", inverse, y)
    mu = np.einsum("lnm,ln->lm", z, w)
    q = mu**2 + gamma - np.einsum("lnm,lnm->lm", z, z)
    tall = z.reshape(-1, m)
    c = mu.T @ mu + np.diag(gamma.sum(0)) - tall.T @ tall
    log_likelihood = np.log(np.einsum("lii->li", inverse)).sum() - 0.5 * (w**2).sum()
    return mu, q, c, log_likelihood


def em_iteration(data, gamma, s):
    """Of all modalities."""
    moments = []
    for y, d in data:
        mu, q, c, _ = e_step(y, d, gamma, s)
        new = np.linalg.solve(c, (y.T @ mu).T).T
        new /= np.linalg.norm(new, axis=0)
        moments.append(q)
    return sum(moments) / len(moments)


def fastest(work, repeats=4):
    """Seconds."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main(n, m, l):
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal((l, n)), rng.standard_normal((n, m))) for _ in range(2)]
    a, b = rng.standard_normal((2, 10_000, 500))
    gamma = np.full((l, m), 0.2)
    found = {
        "e_step": 1e3 * fastest(lambda: e_step(*data[0], gamma, 0.05)),
        "iteration": 1e3 * fastest(lambda: em_iteration(data, gamma, 0.05)),
        "gflops": 2e-9 * a.size * b.shape[1] / fastest(lambda: a.T @ b),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
