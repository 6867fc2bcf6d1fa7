"""Decides how many threads to use."""

from __future__ import annotations

import os

import numpy as np
from sklearn.utils import check_scalar
from threadpoolctl import threadpool_info

# More than any machine has cores; the library starts as many as it is told.
MOST = 1024


def n_threads(n_jobs: int | None) -> int:
    """Threads for `n_jobs`; None keeps to the limits of threadpoolctl and OMP_NUM_THREADS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = cores or 1
    if n_jobs is None:
        pools = threadpool_info()
        limits = [int(pool["num_threads"]) for pool in pools if pool["user_api"] == "openmp"]
        return max(1, min([cores, *limits]))
    check_scalar(n_jobs, "n_jobs", (int, np.integer), max_val=MOST)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 means all cores")
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
