"""The recording of the first minute: `python -m website.recording` runs its commands, and draws docs/first-minute.svg.

The picture is a terminal whose lines appear one after another, as they did. It is styled text alone: no script, no font
that is fetched. Where nothing moves, as in print, all lines are there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from codegen.shared import ROOT
from logicalrep.postgres.connection import ConnectionSettings
from logicalrep.postgres.local_server import LocalServer, find_installation

PICTURE = ROOT / "docs/first-minute.svg"
COMMANDS = (
    'pip install --quiet ".[local]" ./native polars',
    'logicalrep check --dsn "$DSN" --to lake && logicalrep replicate --dsn "$DSN" --to lake --once',
    'python -c \'import logicalrep; print(logicalrep.read("lake", "public.orders").polars())\'',
    'psql "$DSN" --command "UPDATE orders SET price = 9.99 WHERE customer = \'Ben\'"',
    'logicalrep replicate --dsn "$DSN" --to lake --once --quiet',
    'python -c \'import logicalrep; print(logicalrep.read("lake", "public.orders").polars())\'',
)
_TABLE = (
    "CREATE TABLE public.orders (id int PRIMARY KEY, customer text, price numeric(8, 2))",
    "INSERT INTO public.orders VALUES (1, 'Ada', 12.50), (2, 'Ben', 3.99), (3, 'Ada', 7.50)",
)
_LONGEST_PAUSE = 1.0
"""The seconds that a pause takes at most in the picture."""
_READING = 1.0
"""The seconds between an output and the next command."""
COLUMNS, _WIDTH, _HEIGHT, _MARGIN = 118, 7.25, 17, 16
"""The characters of a line, the size of one, and the margin; in pixels."""
_STYLE = """
rect { fill: #f6f8fa; stroke: #c9d1d9; }
text { font: 12px ui-monospace, "Cascadia Mono", "Liberation Mono", Menlo, Consolas, monospace; fill: #1d2125;
  white-space: pre; animation: appear 1ms both; }
.command { fill: #0b5cad; font-weight: bold; }
@keyframes appear { from { opacity: 0; } }
@media (prefers-color-scheme: dark) {
  rect { fill: #161b22; stroke: #3d444d; } text { fill: #e3e5e7; } .command { fill: #8db1d6; }
}
@media (prefers-reduced-motion: reduce) { text { animation: none; } }
"""


@dataclass(frozen=True)
class Line:
    """A line of the terminal, and the second at which it appears."""

    text: str
    at: float
    is_command: bool = False


def record(folder: Path) -> list[Line]:
    """Run the commands in a new environment, on a server with one table, and return what a terminal shows.

    Raises:
        CalledProcessError: a command failed.
    """
    subprocess.run([sys.executable, "-P", "-m", "venv", folder / "venv"], check=True)
    (folder / "shop").mkdir()
    lines: list[Line] = []
    # On a busy machine a line about a broken connection would be in the picture.
    patient = LocalServer(find_installation(18), wal_sender_timeout="0")
    with patient as server, ConnectionSettings(server.dsn).connect() as connection:
        for statement in _TABLE:
            connection.execute(statement)
        environment = os.environ | {
            "DSN": server.dsn,
            "PATH": os.pathsep.join([str(folder / "venv/bin"), str(server.installation.bin), os.environ["PATH"]]),
            "LD_LIBRARY_PATH": str(server.installation.folder / "lib"),
            "PYTHONUNBUFFERED": "1",
        }
        moment = 0.5
        for command in COMMANDS:
            lines += (Line(text, moment, is_command=True) for text in _wrapped(f"$ {command}"))
            # The installation is from the clone; all else has a folder of its own.
            working_folder = ROOT if command.startswith("pip ") else folder / "shop"
            start = time.monotonic()
            with subprocess.Popen(
                ["bash", "-c", command], cwd=working_folder, env=environment, text=True, bufsize=1,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            ) as process:  # fmt: skip
                assert process.stdout is not None
                for text in process.stdout:
                    moment += min(time.monotonic() - start, _LONGEST_PAUSE)
                    start = time.monotonic()
                    lines += (Line(part, moment) for part in _wrapped(text.rstrip("\n")))
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, command)
            moment += min(time.monotonic() - start, _LONGEST_PAUSE) + _READING
    return lines


def drawn(lines: Iterable[Line]) -> str:
    """Return lines as a picture."""
    texts = list(lines)
    width, height = COLUMNS * _WIDTH + 2 * _MARGIN, len(texts) * _HEIGHT + 2 * _MARGIN
    body = "".join(_drawn(line, row) for row, line in enumerate(texts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'aria-label="The first minute in a terminal">\n<style>{_STYLE}</style>\n'
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1}" rx="8"/>\n{body}</svg>\n'
    )


def _drawn(line: Line, row: int) -> str:
    kind = ' class="command"' if line.is_command else ""
    place = f'x="{_MARGIN}" y="{_MARGIN + row * _HEIGHT + 12}"'
    return f'<text{kind} {place} style="animation-delay:{line.at:.1f}s">{escape(line.text)}</text>\n'


def _wrapped(text: str) -> list[str]:
    """Return a line as a terminal breaks it."""
    return [text[start : start + COLUMNS] for start in range(0, max(len(text), 1), COLUMNS)]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="logicalrep-recording-") as folder:
        PICTURE.write_text(drawn(record(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
