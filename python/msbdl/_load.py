"""Reads models' files."""

from __future__ import annotations

from os import PathLike

from msbdl._classifier import MSBDLClassifier, MSBDLTagger
from msbdl._core import Model
from msbdl._dictionary import MSBDL


def load(path: str | PathLike[str]) -> MSBDL | MSBDLClassifier | MSBDLTagger:
    """Reads a model's file, as written by ``save`` or by the command ``msbdl fit``.

    A model that was learnt with labels becomes a classifier or a tagger.
    """
    model = Model.load(path)
    n_atoms = {
        name: dictionary.shape[1]
        for name, dictionary in zip(model.names, model.dictionaries, strict=True)
    }
    kind = MSBDL if model.labels is None else MSBDLTagger if model.has_tags else MSBDLClassifier
    estimator = kind(
        n_atoms=n_atoms, preset=model.preset, prior=model.prior, random_state=model.seed
    )
    return estimator._adopt(model)
