"""Learns dictionaries from several kinds of measurement of the same things at once."""

from importlib.metadata import version

from msbdl._classifier import MSBDLClassifier, MSBDLTagger
from msbdl._codes import Codes
from msbdl._dictionary import MSBDL
from msbdl._load import load
from msbdl._match import SampleMismatchWarning
from msbdl._mudata import fit_mudata
from msbdl._multiview import MultiView
from msbdl._perview import PerView

__version__ = version("msbdl")
__all__ = [
    "MSBDL",
    "Codes",
    "MSBDLClassifier",
    "MSBDLTagger",
    "MultiView",
    "PerView",
    "SampleMismatchWarning",
    "fit_mudata",
    "load",
]
