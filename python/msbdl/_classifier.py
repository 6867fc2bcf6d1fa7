"""Tells classes and tags from several modalities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from msbdl._arrays import join
from msbdl._base import Callback, Groups
from msbdl._batches import Batches, Source
from msbdl._core import Model
from msbdl._labels import absent_labels, by_id, from_names, tag_names, tag_table, whole
from msbdl._multiview import MultiView
from msbdl._settings import task_settings


class MSBDLClassifier(ClassifierMixin, Batches):  # type: ignore[misc]
    """Tells classes with dictionaries that are learnt for it.

    The labels take part in learning, and the read-out that does best on samples set aside tells
    the classes. Samples may lack modalities, and labels (NaN or None).

    Parameters
    ----------
    n_atoms, preset, prior, groups, root, max_leaves, schedule, batch_size, posterior, sigma0, \
sigma_inf, alpha, max_iter, center, random_state, n_jobs, verbose, callback
        As those of MSBDL.
    validation : float, default=0.2
        Share of the labelled samples that is set aside to choose the read-out; may be 0.
    validation_rows : sequence of int, default=None
        The samples that ``fit`` is to set aside instead.
    beta0 : float or dict of str to float, default=None
        Label noise (standard deviation) at the start.
    alpha_beta : float, default=None
        Factor on the label noise per annealing step.
    nu : float, default=None
        Ridge on the weights of the labels.
    validate_every : int, default=None
        Iterations between looks at the samples set aside.
    balance : bool, default=False
        Let every class count the same, however many samples it has.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    dictionaries_, noise_variances_, history_, ... : as those of MSBDL
    """

    def __init__(
        self,
        n_atoms: int | Mapping[str, int] | None = None,
        *,
        preset: str = "auto",
        prior: str = "one-to-one",
        groups: Groups | None = None,
        root: str | None = None,
        max_leaves: int | None = None,
        schedule: str | None = None,
        batch_size: int | None = None,
        posterior: str | None = None,
        sigma0: float | Mapping[str, float] | None = None,
        sigma_inf: float | None = None,
        alpha: float | None = None,
        max_iter: int | None = None,
        center: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        validation: float = 0.2,
        validation_rows: Sequence[int] | None = None,
        beta0: float | Mapping[str, float] | None = None,
        alpha_beta: float | None = None,
        nu: float | None = None,
        validate_every: int | None = None,
        balance: bool = False,
    ) -> None:
        super().__init__(
            n_atoms,
            preset=preset,
            prior=prior,
            groups=groups,
            root=root,
            max_leaves=max_leaves,
            schedule=schedule,
            batch_size=batch_size,
            posterior=posterior,
            sigma0=sigma0,
            sigma_inf=sigma_inf,
            alpha=alpha,
            max_iter=max_iter,
            center=center,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            callback=callback,
        )
        self.validation = validation
        self.validation_rows = validation_rows
        self.beta0 = beta0
        self.alpha_beta = alpha_beta
        self.nu = nu
        self.validate_every = validate_every
        self.balance = balance

    def fit(self, X: Any, y: Any) -> MSBDLClassifier:
        """Learns from samples and their classes.

        Parameters
        ----------
        X : array, dict, list, frame, MuData or MultiView
            As for MSBDL.
        y : array-like of shape (n_samples,)
            Classes; NaN or None is a sample without a label. When X and y have sample ids, they
            are matched, and samples that y does not name have no label.
        """
        views, y = self._matched(X, y, fitting=True)
        labels = self._labels(y)
        check_consistent_length(views, y)
        self._fit_source(Source(views, labels, held=None), task_settings(self))
        return self

    def _matched(self, X: Any, y: Any, *, fitting: bool) -> tuple[MultiView, Any]:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        views = self._views(X, fitting=fitting)
        return views, by_id(y, views)

    def _labels(self, y: Any) -> NDArray[np.float64]:
        """The labels that a fit learns from, as `_places` has them; sets the classes."""
        return self._class_labels(y)

    def _class_labels(self, y: Any) -> NDArray[np.float64]:
        labels = column_or_1d(y, warn=True)
        known = ~absent_labels(labels)
        if not known.any():
            raise ValueError("y: no sample has a label")
        given = whole(labels[known])
        try:
            classes, numbers = np.unique(given, return_inverse=True)
        except TypeError as error:
            raise TypeError(f"y mixes classes of different types: {error}") from error
        check_classification_targets(given)
        self.classes_ = classes
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]}: there is nothing to tell apart")
        places = np.full((len(labels), 1), np.nan)
        places[known, 0] = numbers
        return places

    def _places(self, y: Any, classes: Any) -> NDArray[np.float64]:
        """A column of places among the classes, NaN where there is none; sets the classes."""
        return self._class_places(y, classes)

    def _class_places(self, y: Any, classes: Any) -> NDArray[np.float64]:
        labels = column_or_1d(y, warn=True)
        known = ~absent_labels(labels)
        given = whole(labels[known])
        if known.any():
            check_classification_targets(given)
        _check_partial_fit_first_call(self, classes)
        place = {name: number for number, name in enumerate(self.classes_.tolist())}
        unknown = [name for name in given.tolist() if name not in place]
        if unknown:
            raise ValueError(f"y: the class {unknown[0]!r} is not among classes, {[*place]}")
        places = np.full((len(labels), 1), np.nan)
        places[known, 0] = [place[name] for name in given.tolist()]
        return places

    def _predictions(self, X: Any) -> list[Any]:
        """What the model says, block by block, for `_ordered`."""
        check_is_fitted(self)
        self._fit_read_out()
        return self._in_blocks(self._views(X, fitting=False), self._model.predict)

    def _ordered(self, blocks: list[NDArray[np.float64]], unseen: float) -> NDArray[np.float64]:
        """Columns in the order of the classes; those that have not come yet are `unseen`."""
        place = {name: column for column, name in enumerate(self._model.labels or [])}
        order = np.array([place.get(str(name), -1) for name in self.classes_])
        scores = join(blocks)[:, order]
        scores[:, order < 0] = unseen
        return scores

    def _decision(self, X: Any) -> NDArray[np.float64]:
        return self._ordered([block[1] for block in self._predictions(X)], -np.inf)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, (n_samples, n_classes)."""
        return self._ordered([block[0] for block in self._predictions(X)], 0.0)

    def votes(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """Probabilities by the codes of each modality that is given.

        The others help to make those codes. Rows of samples that lack a modality are NaN.
        """
        blocks = [dict(block[2]) for block in self._predictions(X)]
        return {name: self._ordered([block[name] for block in blocks], 0.0) for name in blocks[0]}

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds up to a constant for each sample; of two classes, those of the second."""
        decision = self._decision(X)
        return decision[:, 1] - decision[:, 0] if decision.shape[1] == 2 else decision

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each sample."""
        best = self._decision(X).argmax(axis=1)
        return cast(NDArray[Any], self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the samples with a label whose class is told; of tags, all tags."""
        from sklearn.metrics import accuracy_score

        views, y = self._matched(X, y, fitting=False)
        check_consistent_length(views, y, sample_weight)
        known = ~self._absent(y)
        if not known.any():
            raise ValueError("y: no sample has a label")
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        # Without missing labels, numbers among objects are numbers again.
        told = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        told = np.array(told[known].tolist())
        return float(accuracy_score(told, self.predict(views.rows(known)), sample_weight=weight))

    def _absent(self, y: Any) -> NDArray[np.bool_]:
        """Shows which samples have no label."""
        return absent_labels(column_or_1d(y, warn=True))

    def _adopt(self, model: Model) -> MSBDLClassifier:
        super()._adopt(model)
        names = from_names(model.all_labels or [], model.name_type)
        # Text that looks like numbers is in their order in the file.
        self.classes_ = names if model.has_tags else np.sort(names)
        return self


class MSBDLTagger(MSBDLClassifier):
    """Tells which tags samples have: any number of them each.

    Takes a table of noughts and ones as y, with a column for each tag and rows of NaN for samples
    whose tags are not known. With classes as y it is an MSBDLClassifier. Parameters and
    attributes are the same; ``classes_`` are the tags.
    """

    def _labels(self, y: Any) -> NDArray[np.float64]:
        table = tag_table(y)
        if table is None:
            return self._class_labels(y)
        self.classes_ = tag_names(y, table)
        return table

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, block: Any = None) -> MSBDLTagger:
        """Learns from a batch of samples and their tags, as ``MSBDLClassifier.partial_fit`` does.

        Parameters
        ----------
        X : array, dict, list, frame, MuData or MultiView
            Samples; as for ``encode``, modalities may be missing.
        y : array-like of shape (n_samples, n_tags)
            As for ``fit``; the tags are the same in all batches.
        classes : array-like of shape (n_tags,), default=None
            Names of the tags; by default those of the columns of the first y.
        block : str or int, default=None
            The name of the batch if it will come again, as in ``MSBDL.partial_fit``.
        """
        return super().partial_fit(X, y, classes, block=block)

    def _places(self, y: Any, classes: Any) -> NDArray[np.float64]:
        table = tag_table(y)
        if table is None:
            return self._class_places(y, classes)
        names = tag_names(y, table) if classes is None else np.asarray(classes)
        if not hasattr(self, "_learnt"):
            self.classes_ = names
        named = classes is not None or hasattr(y, "columns")
        if table.shape[1] != len(self.classes_) or (
            named and not np.array_equal(names, self.classes_)
        ):
            raise ValueError(
                f"y: the tags {names.tolist()} are not those of the first batch, "
                f"{self.classes_.tolist()}"
            )
        return table

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the tags, (n_samples, n_tags)."""
        return super().predict_proba(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log-odds of the tags, (n_samples, n_tags)."""
        return self._decision(X) if self._with_tags() else super().decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """One where a tag is more probable than not, (n_samples, n_tags)."""
        if not self._with_tags():
            return super().predict(X)
        return (self._decision(X) > 0).astype(int)

    def _absent(self, y: Any) -> NDArray[np.bool_]:
        table = tag_table(y)
        return super()._absent(y) if table is None else np.isnan(table[:, 0])

    def _with_tags(self) -> bool:
        return self._model.has_tags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
