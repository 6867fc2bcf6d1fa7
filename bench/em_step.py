"""Compares one exact EM iteration (bimodal) with batched NumPy, in one run.

Run as `bench/em_step.sh`, which makes the environment and builds the other side.
"""

import subprocess
import sys
import time

import numpy as np

BINARY = sys.argv[1]
REPEATS = 5


def em_iteration(y, d, gamma, s):
    """Cholesky, inverse factor and one tall product per modality: the best batched form."""
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
    new = np.linalg.solve(c, (y.T @ mu).T).T
    return new / np.linalg.norm(new, axis=0), q, log_likelihood


def numpy_ms(n, m, l):
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal((l, n)), rng.standard_normal((n, m))) for _ in range(2)]
    gamma = np.full((l, m), 0.2)
    fastest = np.inf
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = [em_iteration(y, d, gamma, 0.05) for y, d in data]
        _ = (found[0][1] + found[1][1]) / 2
        fastest = min(fastest, time.perf_counter() - start)
    return 1e3 * fastest


def msbdl_ms(n, m, l, threads):
    runs = [
        float(subprocess.check_output([BINARY, str(threads), str(l), str(n), str(m)]))
        for _ in range(REPEATS)
    ]
    return min(runs)


def main():
    threads = int(sys.argv[2])
    print(f"| N | M | L | NumPy {np.__version__} ms | msbdl ms | ratio | (threads: {threads}) |")
    print("|---|---|---|---|---|---|---|")
    for n, m, l in [(20, 50, 1000), (49, 196, 1000), (100, 400, 400)]:
        theirs, ours = numpy_ms(n, m, l), msbdl_ms(n, m, l, threads)
        print(f"| {n} | {m} | {l} | {theirs:.1f} | {ours:.2f} | {theirs / ours:.1f} | |")


main()
