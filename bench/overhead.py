"""Measures what calling from Python costs: the share of a fit that is not the library's iterations.

Run as `target/python/new/bin/python bench/overhead.py` after `./test.sh`, or wherever the package
is installed. The data are of the paper's size: two modalities of 20 features, 50 atoms, 1000
samples.
"""

import time

import numpy as np
from msbdl import MSBDL

rng = np.random.default_rng(0)
support = rng.random((1000, 50)).argsort(axis=1) < 5
X = {
    name: (support * rng.normal(size=support.shape)) @ rng.normal(size=(50, 20))
    + noise * rng.normal(size=(1000, 20))
    for name, noise in (("first", 0.07), ("second", 0.7))
}
for repeat in range(3):
    iterations = []
    model = MSBDL(
        n_atoms=50, n_jobs=1, callback=lambda facts, to=iterations: to.append(facts["seconds"])
    )
    start = time.perf_counter()
    model.fit(X)
    total = time.perf_counter() - start
    start = time.perf_counter()
    model.set_params(callback=None).fit(X)
    silent = time.perf_counter() - start
    # The clock of the iterations starts with the first and runs while the callback is asked.
    print(
        f"fit {total:.2f} s, of which outside of the iterations "
        f"{1e3 * (total - iterations[-1]):.1f} ms "
        f"({100 * (1 - iterations[-1] / total):.2f} %); without a callback {silent:.2f} s"
    )
