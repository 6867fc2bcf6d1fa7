"""Warns in the name of whoever called the package."""

from __future__ import annotations

import sys
import warnings


def warn(text: str, category: type[Warning]) -> None:
    """Warns where the first caller outside of the package is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_back.f_globals["__name__"].startswith("msbdl."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level + 1)
