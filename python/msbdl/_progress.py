"""Shows how far a fit has come."""

from __future__ import annotations

import sys
import time
from typing import Any


class Bar:
    """Draws a bar with tqdm."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        form = "{l_bar}{bar}| {elapsed}<{remaining}{postfix}"
        self._bar = tqdm(total=1.0, desc="msbdl", bar_format=form)

    def __call__(self, facts: dict[str, Any]) -> None:
        self._bar.update(facts["progress"] - self._bar.n)
        self._bar.set_postfix_str(words(facts), refresh=False)

    def close(self, complete: bool) -> None:
        if complete:
            # The share that is done is an estimate, and ends a little early.
            self._bar.update(1.0 - self._bar.n)
        self._bar.close()


class Lines:
    """Prints a line a second where there is no tqdm."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()

    def __call__(self, facts: dict[str, Any]) -> None:
        now, share = time.monotonic(), facts["progress"]
        if now - self._last < 1.0:
            return
        self._last = now
        left = f"{(now - self._start) * (1 - share) / share:.0f} s left" if share > 0.01 else "..."
        print(f"msbdl: {share:4.0%}, {left}, {words(facts)}", file=sys.stderr, flush=True)

    def close(self, complete: bool) -> None:
        pass


def progress() -> Bar | Lines:
    """The best that can be had."""
    try:
        return Bar()
    except ImportError:
        return Lines()


def words(facts: dict[str, Any]) -> str:
    """Stage, iteration and noise."""
    noise = " ".join(f"{name} {sigma:.3g}" for name, sigma in facts["sigma"].items())
    return f"{facts['stage']}, iteration {facts['iteration']}, noise {noise}"
