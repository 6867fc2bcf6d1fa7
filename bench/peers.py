"""Learns one dictionary with other packages: samples are rows, atoms come back as columns.

The settings beside each are the grid that its best are taken from.
"""

import dictlearn
import numpy as np
import spams
from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning

SPAMS_WEIGHTS = [0.05, 0.1, 0.2, 0.4]
SKLEARN_WEIGHTS = [0.1, 0.3, 1.0]
SPARSITIES = [3, 5]


def with_spams(y, n_atoms, weight, threads):
    d = spams.trainDL(
        np.asfortranarray(y.T), K=n_atoms, lambda1=weight, mode=2, iter=1000,
        batchsize=400, numThreads=threads, verbose=False,
    )  # fmt: skip
    return np.asarray(d)


def with_sklearn(y, n_atoms, weight, threads):
    model = DictionaryLearning(
        n_atoms, alpha=weight, max_iter=100, fit_algorithm="cd", n_jobs=threads, random_state=0
    )
    return model.fit(y).components_.T


def with_sklearn_minibatch(y, n_atoms, weight, threads):
    model = MiniBatchDictionaryLearning(
        n_atoms, alpha=weight, max_iter=200, batch_size=200, fit_algorithm="cd",
        n_jobs=threads, random_state=0,
    )  # fmt: skip
    return model.fit(y).components_.T


def with_dictlearn(y, n_atoms, sparsity, _threads):
    model = dictlearn.DictionaryLearning(
        n_atoms, n_nonzero_coefs=sparsity, max_iter=100, random_state=0
    )
    return model.fit(y).components_.T


PEERS = {
    "SPAMS trainDL, 1000 iterations": (with_spams, SPAMS_WEIGHTS),
    "scikit-learn DictionaryLearning": (with_sklearn, SKLEARN_WEIGHTS),
    "scikit-learn MiniBatchDictionaryLearning": (with_sklearn_minibatch, SKLEARN_WEIGHTS),
    "dictlearn AK-SVD": (with_dictlearn, SPARSITIES),
}


def recovery(d, truth):
    """Per cent of the true atoms that some learnt atom matches with a cosine above .99."""
    d = d / np.maximum(np.linalg.norm(d, axis=0), 1e-12)
    truth = truth / np.linalg.norm(truth, axis=0)
    return 100 * (np.abs(truth.T @ d).max(axis=1) > 0.99).mean()
