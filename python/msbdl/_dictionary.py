"""Learns dictionaries as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted

from msbdl._arrays import dense, explained
from msbdl._base import Base
from msbdl._core import Stream
from msbdl._match import sample_ids
from msbdl._multiview import MultiView
from msbdl._threads import n_threads


class MSBDL(TransformerMixin, Base):  # type: ignore[misc]
    """Multimodal sparse Bayesian dictionary learning.

    Every modality gets a dictionary of its own, and each sample a sparse code whose support the
    modalities share. Noise levels and the number of atoms in use are found from the data.

    Parameters
    ----------
    n_atoms : int or dict of str to int, default=None
        Number of atoms of each dictionary. None is what ``groups`` say, or else twice the features
        of the smallest modality, but at most one atom for ten samples.
    preset : {"auto", "paper", "msbdl-1", "msbdl-2", "msbdl-3", "msbdl-4"}, default="auto"
        Procedure to follow; all but "paper" find the noise by themselves.
    prior : {"one-to-one", "atom-to-subspace", "hierarchical", "tree"}, default="one-to-one"
        Which atoms are in use together; all but the first allow dictionaries of different sizes.
    groups : list of dict of str to list of int, default=None
        Branches of a tree prior: for each, the atoms of every modality; learnt if not given.
    root : str, default=None
        The modality of the roots (tree priors).
    max_leaves : int, default=None
        The most atoms of another modality under a root, where branches are learnt.
    schedule : {"full", "incremental", "batch"}, default=None
        Samples that an update uses, if not those of the preset.
    batch_size : int, default=None
        Samples per block of the schedules "incremental" and "batch"; None is half of the samples.
    posterior : {"exact", "approximate"}, default=None
        How codes are computed, if not as the preset has it.
    sigma0 : float or dict of str to float, default=None
        Noise standard deviation to start from, in the units of the data (preset "paper").
    sigma_inf : float, default=None
        Noise standard deviation at which annealing ends (preset "paper").
    alpha : float, default=None
        Factor on the noise standard deviation per annealing step (preset "paper").
    max_iter : int, default=None
        Iterations after which to stop in any case.
    center : bool, default=True
        Learn the mean of each feature; otherwise take the data as they are.
    random_state : int, RandomState or None, default=0
        Seed of the random numbers; the same seed gives the same bits.
    n_jobs : int, default=None
        Threads to use; the result does not depend on it. None is as many as OpenMP may use here
        (see threadpoolctl), -1 all cores.
    verbose : int, default=0
        Show the progress of the fit.
    callback : callable, default=None
        Called with a dict of facts after every iteration; the fit stops when it returns True.

    Attributes
    ----------
    modalities_ : list of str
    groups_ : list of dict of str to list of int
        Which atoms belong together.
    dictionaries_ : dict of str to ndarray of shape (n_features, n_atoms)
    means_ : dict of str to ndarray of shape (n_features,)
    noise_variances_ : dict of str to float
    usage_ : ndarray of shape (n_atoms,)
    variance_explained_ : dict of str to float
    history_ : dict of str to ndarray with n_iter rows
    stop_reason_ : str
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int
        Features of all modalities together.

    Examples
    --------
    >>> import numpy as np
    >>> from msbdl import MSBDL
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.normal(size=(200, 8)) * (rng.random((200, 8)) < 0.3)
    >>> X = {name: codes @ rng.normal(size=(8, 6)) for name in ("image", "text")}
    >>> model = MSBDL(n_atoms=8).fit(X)
    >>> model.transform(X).shape
    (200, 16)
    >>> model.encode({"text": X["text"][:5]}).gamma.shape
    (5, 8)
    """

    def fit(self, X: Any, y: Any = None) -> MSBDL:
        """Learns from samples.

        Parameters
        ----------
        X : array, dict, list, frame, MuData or MultiView
            One array of shape (n_samples, n_features), or several modalities. A row of NaN is a
            sample that lacks the modality.
        y : None
            Ignored.
        """
        self._fit(self._views(X, fitting=True))
        return self

    def partial_fit(self, X: Any, y: Any = None, *, block: Any = None) -> MSBDL:
        """Learns from a batch of samples, and goes on from what is there.

        The first batch of all is fitted. Every later one is coded with the model as it stands and
        takes one step of incremental EM: E-step on the batch, M-step on the sums of all batches so
        far. Going through all batches once is one pass of the incremental schedule. After ``fit``,
        its samples count as a batch that does not come again. The sums are part of the model:
        pickles and files go on with the same bits.

        Parameters
        ----------
        X : array, dict, list, frame, MuData or MultiView
            Samples; as for ``encode``, modalities may be missing.
        y : None
            Ignored.
        block : str or int, default=None
            The name of the batch if it will come again, for a further pass: its old sums are then
            replaced. Without a name, the sums of the batch stay as they are.
        """
        first = not hasattr(self, "_learnt")
        views = self._views(X, fitting=first)
        if first:
            self._fit(views)
            stream = Stream.start(self._model, bool(self.center))
        else:
            stream = Stream.resume(self._model)
        name = None if block is None else str(block)
        with explained(views):
            stream.step(dense(views), name, n_threads(self.n_jobs))
        self._learnt = stream.model()
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Codes samples: posterior means, (n_samples, n_atoms of all modalities).

        The columns of modalities that are missing are nought. With ``set_output`` to pandas, the
        sample ids of X are the index.
        """
        codes = self.encode(X)
        stacked = self._stacked(codes)
        if codes.index is not None and _get_output_config("transform", self)["dense"] == "pandas":
            import pandas as pd

            # scikit-learn looks for an index in frames alone, but leaves one that is there.
            stacked = pd.DataFrame(stacked, index=codes.index)
        return stacked

    def inverse_transform(self, X: Any) -> NDArray[np.float64] | MultiView:
        """Makes data of codes: an array if the model has one modality, else a MultiView."""
        check_is_fitted(self)
        index = sample_ids("X", X)
        dictionaries, means = self.dictionaries_, self.means_
        widths = [dictionary.shape[1] for dictionary in dictionaries.values()]
        codes = check_array(X, dtype=np.float64)
        if codes.shape[1] != sum(widths):
            raise ValueError(f"X has {codes.shape[1]} columns, but codes have {sum(widths)}")
        parts = np.split(codes, np.cumsum(widths)[:-1], axis=1)
        views: dict[str, NDArray[np.float64]] = {
            name: means[name] + part @ dictionaries[name].T
            for name, part in zip(dictionaries, parts, strict=True)
        }
        return MultiView._of({**views}, index) if len(views) > 1 else next(iter(views.values()))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-evidence per sample."""
        return float(self.encode(X).log_evidence.mean())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the codes: msbdl0, ... or, with several modalities, a_msbdl0."""
        dictionaries = self.dictionaries_
        if hasattr(self, "feature_names_in_") or input_features is not None:
            _check_feature_names_in(self, input_features)
        several = len(dictionaries) > 1
        names = [
            f"{name}_msbdl{atom}" if several else f"msbdl{atom}"
            for name, dictionary in dictionaries.items()
            for atom in range(dictionary.shape[1])
        ]
        return np.array(names, dtype=object)
