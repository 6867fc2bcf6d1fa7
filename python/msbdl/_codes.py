"""Holds the codes of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Codes:
    """Codes of samples, in the units of the data; rows are samples.

    Attributes
    ----------
    mean : dict of str to ndarray of shape (n_samples, n_atoms)
        Posterior means of the coefficients, by modality.
    std : dict of str to ndarray of shape (n_samples, n_atoms)
        Posterior standard deviations of the coefficients, by modality.
    reconstruction : dict of str to ndarray of shape (n_samples, n_features)
        What the means stand for; the learnt mean alone where a sample lacks the modality.
    gamma : ndarray of shape (n_samples, n_atoms)
        Prior variances of the coefficients, which the modalities share; nought is "not in use".
    log_evidence : ndarray of shape (n_samples,)
        Log-likelihood of what was observed of each sample.
    index : ndarray of shape (n_samples,) or None
        Sample ids, when the samples had any.
    """

    mean: dict[str, NDArray[np.float64]]
    std: dict[str, NDArray[np.float64]]
    reconstruction: dict[str, NDArray[np.float64]]
    gamma: NDArray[np.float64]
    log_evidence: NDArray[np.float64]
    index: NDArray[Any] | None = None

    def __repr__(self) -> str:
        n_samples, n_atoms = self.gamma.shape
        return f"Codes({n_samples} samples, {n_atoms} atoms: {', '.join(self.mean)})"
