"""
Draws folded stacks as a flame graph, an SVG without script: widths are shares of the samples, the pointer tells the rest.

    py-spy record --function --pid PID --format raw --output schedd.txt --duration 20
    python -m tests.performance.flames --title "after" --output after.svg schedd=schedd.txt shadow=shadow.txt

Each file is one column, as wide as its service's part of all samples.  Samples of threads that only wait are left out.
"""

import argparse
import html
import re
import zlib
from pathlib import Path
from typing import Final

import msgspec

WIDTH: Final = 1600
ROW: Final = 17
NARROWEST: Final = 1.2
"""Pixels; what is narrower is left out, with all above it."""
LETTER: Final = 6.4
"""Pixels of a letter of the text in a box."""
WAITING: Final = (
    *("runtime/lifeline.py", "_worker (concurrent/futures/thread.py", "select (selectors.py"),
    "Runner.run (asyncio/runners.py",  # uvloop itself: that it waits is not told from what it does
)
"""Where a thread stands that has nothing to do."""
BORING: Final = (
    *(
        "<module>",
        "_run_module",
        "_run_code",
        "run_module",
        "_bootstrap",
        "main (",
        "Runner.run (",
        "Thread.run (",
    ),
    *("kettle_services/master/", "<lambda> (kettle_services/starter"),
)
"""What every stack begins with."""


PROCESS: Final = re.compile(r'process \d+:"(?P<command>.*)"')
"""The frame with which py-spy begins the stacks of a child."""


class Frame(msgspec.Struct):
    """A function, called as its place in the tree says, and in how many samples it was."""

    name: str
    count: int = 0
    inner: dict[str, "Frame"] = {}

    def add(self, stack: list[str], count: int) -> None:
        """Count one stack, outermost first."""
        self.count += count
        if stack:
            self.inner.setdefault(stack[0], Frame(stack[0])).add(stack[1:], count)

    @property
    def depth(self) -> int:
        """Of the tree below, this one included."""
        return 1 + max((each.depth for each in self.inner.values()), default=0)


def called(frame: str) -> str:
    """
    A frame as it is told: a process by its module or script, so that all starters are one and nobody's paths are shown.
    """
    process = PROCESS.fullmatch(frame)
    if process is None:
        return frame
    words = process["command"].split()
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    return next((Path(word).name for word in words[1:] if not word.startswith("-")), Path(words[0]).name)


def read(name: str, path: Path) -> Frame:
    """One service."""
    root = Frame(name)
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        if any(mark in frames[-1] for mark in WAITING):
            continue
        root.add([called(each) for each in frames if not any(mark in each for mark in BORING)], int(count))
    return root


def colour(name: str) -> str:
    """Warm, and the same for the same name in every picture."""
    mark = zlib.crc32(name.partition(" (")[0].encode())
    return f"hsl({20 + mark % 35},{70 + (mark >> 8) % 20}%,{58 + (mark >> 16) % 16}%)"


def box(frame: Frame, left: float, top: float, width: float, whole: int) -> str:
    """One frame: its colour, as much of its name as there is room for, and all of it for who points at it."""
    name = html.escape(frame.name)
    told = f"{name}: {100 * frame.count / whole:.1f} %"
    letters = int((width - 4) / LETTER)
    text = html.escape(frame.name[:letters]) if letters > 2 else ""
    label = f'<text x="{left + 2:.1f}" y="{top + 12:.0f}">{text}</text>' if text else ""
    return (
        f'<g><title>{told}</title><rect x="{left:.1f}" y="{top:.0f}" width="{width:.1f}" height="{ROW - 1}" '
        f'fill="{colour(frame.name)}"/>{label}</g>'
    )


def boxes(frame: Frame, left: float, row: int, scale: float, rows: int, whole: int) -> list[str]:
    """A frame and all that it calls, the callers below."""
    width = frame.count * scale
    if width < NARROWEST:
        return []
    drawn = [box(frame, left, (rows - row) * ROW, width, whole)]
    for each in sorted(frame.inner.values(), key=lambda inner: -inner.count):
        drawn += boxes(each, left, row + 1, scale, rows, whole)
        left += each.count * scale
    return drawn


def picture(services: list[Frame], title: str) -> str:
    """All of them side by side."""
    whole = sum(each.count for each in services)
    rows = max(each.depth for each in services) + 1
    scale, left = WIDTH / whole, 0.0
    drawn: list[str] = []
    for each in services:
        drawn += boxes(each, left, 0, scale, rows, whole)
        left += each.count * scale
    height = (rows + 1) * ROW + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        f'<text x="4" y="14" font-size="14">{html.escape(title)}</text>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def main() -> int:
    """Read, draw and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stacks", nargs="+", metavar="NAME=FILE", help="folded stacks, as py-spy writes them")
    parser.add_argument("--title", default="")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    pairs = (each.partition("=") for each in arguments.stacks)
    services = [read(name, Path(path)) for name, _, path in pairs]
    arguments.output.write_text(picture(services, arguments.title))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
