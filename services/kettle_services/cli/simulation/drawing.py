"""The drawings of a run of a simulation, as files: SVG, and PNG for what shows no SVG."""

import importlib
from pathlib import Path
from typing import Final

from kettle_services.cli.errors import CommandError
from kettle_services.cli.output import exports
from kettle_services.simulator.results.drawings.all_of_them import drawn
from kettle_services.simulator.results.result import Result

_ZOOM: Final = 2.0
"""Pixels of a PNG for each one of its SVG."""


def draw(directory: Path, result: Result, *, png: bool) -> list[Path]:
    """
    Write all of them, with `png` each as a PNG, too; the files.

    Raises:
        CommandError: the directory cannot be written, or there is nothing that makes PNG.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{directory}: {error.strerror}") from error
    files: list[Path] = []
    for name, svg in drawn(result).items():
        made = {directory / name: svg.encode()}
        if png:
            made[(directory / name).with_suffix(".png")] = rendered(svg)
        for path, data in made.items():
            exports.write(path, data)
        files += made
    return files


def rendered(svg: str) -> bytes:
    """
    An SVG as a PNG.

    Raises:
        CommandError: the library for it is not installed.
    """
    try:
        resvg = importlib.import_module("resvg_py")
    except ModuleNotFoundError as error:
        raise CommandError("PNG needs the extra kettle[png]: pip install 'kettle[png]'") from error
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=_ZOOM, background="#ffffff"))
