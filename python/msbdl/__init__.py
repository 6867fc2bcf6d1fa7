"""Learns dictionaries from several kinds of measurement of the same things at once."""

from importlib.metadata import version

from msbdl._codes import Codes
from msbdl._dictionary import MSBDL, load
from msbdl._multiview import MultiView, SampleMismatchWarning
from msbdl._perview import PerView

__version__ = version("msbdl")
__all__ = [
    "MSBDL",
    "Codes",
    "MultiView",
    "PerView",
    "SampleMismatchWarning",
    "load",
]
