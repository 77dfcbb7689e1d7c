"""
Rescue files and save point files: partial DAG files that say what is done already.

The text is pure; the functions for names look at the directory.
"""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

VERSION: Final = "2.1.0"
"""Of the form of these files."""
LARGEST: Final = 999
"""No `DAGMAN_MAX_RESCUE_NUM` is larger: names have three digits."""


class RescueNode(msgspec.Struct, frozen=True):
    """What the file says of one node."""

    name: str
    done: bool = False
    failed: bool = False
    spared: bool = False
    """It failed, but all its children are weak: they need only that it has ended, so it counts as done."""
    retries_made: int = 0
    retries: int = 0
    """How often it may be tried again, all in all."""
    unless_exit: int | None = None


def rescue_heading(dag_files: Sequence[str]) -> list[str]:
    """Whose rescue file it is."""
    return ["# Rescue DAG file, created after running", f"#   the {' '.join(dag_files)} DAG file"]


def save_point_heading(node: str) -> list[str]:
    """At which node a save point file was written."""
    return [f"# Save file written at Start Node {node}"]


def rescue(
    heading: Sequence[str], at: float, nodes: Sequence[RescueNode], *, total: int, keep_retries: bool
) -> Iterator[str]:
    """
    The lines of a file.

    `keep_retries`: what is left of the retries stands there too; else all are there again in the next run
    (`DAGMAN_RESET_RETRIES_UPON_RESCUE`).
    """
    day = time.gmtime(at)
    yield from heading
    yield f"# Created {day.tm_mon}/{day.tm_mday}/{day.tm_year} {time.strftime('%H:%M:%S', day)} UTC"
    yield f"# Rescue DAG version: {VERSION}"
    yield "#"
    yield f"# Total number of Nodes: {total}"
    yield f"# Nodes premarked DONE: {sum(node.done for node in nodes)}"
    failed = [node.name for node in nodes if node.failed]
    yield f"# Nodes that failed: {len(failed)}"
    yield f"#   {''.join(f'{name},' for name in failed)}<ENDLIST>"
    yield ""
    for node in nodes:
        yield from _node(node, keep_retries=keep_retries)


def _node(node: RescueNode, *, keep_retries: bool) -> Iterator[str]:
    if node.spared:
        yield "# Failed node with only weak child dependencies:"
    if node.done or node.spared:
        yield f"DONE {node.name}"
    if node.retries and keep_retries:
        left = node.retries - node.retries_made
        yield f"# {node.retries_made} of {node.retries} retries already performed; {left} remaining"
        unless = "" if node.unless_exit is None else f" UNLESS-EXIT {node.unless_exit}"
        yield f"RETRY {node.name} {left}{unless}"


def base_name(primary: Path, *, multi: bool) -> Path:
    """`DAG.rescue`, and of several DAG files `FIRST_multi.rescue`."""
    return primary.with_name(f"{primary.name}{'_multi' if multi else ''}.rescue")


def rescue_name(primary: Path, number: int, *, multi: bool) -> Path:
    """The file with a number."""
    base = base_name(primary, multi=multi)
    return base.with_name(f"{base.name}{number:03d}")


def existing(primary: Path, *, multi: bool) -> dict[int, Path]:
    """All rescue files of a DAG, by number."""
    base = base_name(primary, multi=multi).name
    found: dict[int, Path] = {}
    for entry in os.scandir(primary.parent):
        digits = entry.name.removeprefix(base)
        if digits != entry.name and len(digits) == 3 and digits.isdecimal() and int(digits):
            found[int(digits)] = Path(entry.path)
    return dict(sorted(found.items()))


def newest(primary: Path, *, multi: bool, largest: int) -> int:
    """The number of the newest rescue file; 0 if there is none."""
    return max((number for number in existing(primary, multi=multi) if number <= largest), default=0)


def next_number(primary: Path, *, multi: bool, largest: int) -> int:
    """The number for a new rescue file; at the largest one the last is written again."""
    return min(newest(primary, multi=multi, largest=largest) + 1, largest, LARGEST)


def set_aside(primary: Path, *, multi: bool, after: int = 0) -> list[Path]:
    """Rename the files behind a number to `….old`, so that none is used; the new names.  Raises OSError."""
    moved: list[Path] = []
    for number, path in existing(primary, multi=multi).items():
        if number > after:
            old = path.with_name(f"{path.name}.old")
            path.replace(old)
            moved.append(old)
    return moved


def save_file(directory: Path, primary: Path, node: str, given: str | None) -> Path:
    """Where a save point file of a node is: a name alone is within `save_files`, else it is a path."""
    name = given or f"{node}-{primary.name}.save"
    return directory / name if "/" in name else directory / "save_files" / name
