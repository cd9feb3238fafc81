"""Output for terminals: colours, and a progress bar for long files."""

from __future__ import annotations

import os
import sys
import time
from typing import IO

from logicalrep_runtime.visible import visible


def say(text: str, stream: IO[str] | None = None) -> None:
    """Print a line, by default on standard output, with visible escapes in place of invisible characters."""
    print(visible(text), file=stream, flush=True)


class TerminalStyle:
    """Colours for a stream: none unless it is a terminal, NO_COLOR is unset and TERM is not dumb."""

    def __init__(self, stream: IO[str], choice: str = "auto") -> None:
        # `choice` is auto, always or never.
        is_suitable = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.coloured = choice == "always" or (choice == "auto" and is_suitable)

    def _paint(self, code: str, text: str) -> str:
        text = visible(text)
        return f"\x1b[{code}m{text}\x1b[0m" if self.coloured else text

    def bold(self, text: str) -> str:
        return self._paint("1", text)

    def dim(self, text: str) -> str:
        return self._paint("2", text)

    def red(self, text: str) -> str:
        return self._paint("31", text)


class ProgressBar:
    """A bar on standard error that appears after a second; without a terminal, it never appears."""

    def __init__(self, total: int, stream: IO[str] | None = None) -> None:
        self._total = max(total, 1)
        self._stream = sys.stderr if stream is None else stream
        self._active = self._stream.isatty()
        self._next = time.monotonic() + 1
        self._drawn = False

    def show(self, done: int) -> None:
        """Draw the bar for `done` bytes, at most ten times a second."""
        if not self._active:
            return
        time_now = time.monotonic()
        if time_now < self._next:
            return
        self._next = time_now + 0.1
        self._drawn = True
        part = min(done / self._total, 1)
        self._stream.write(f"\r{'#' * int(30 * part):<30} {part:4.0%} of {self._total / 1e6:.1f} MB\x1b[K")
        self._stream.flush()

    def clear(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
