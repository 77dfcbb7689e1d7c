"""Drawings of a run as PNG, made by the library of the extra `png`, in an environment of its own."""

import struct
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from tests.scenario.client_environments import python_with

from kettle.testing.commands.running import execute
from kettle_services.cli.__main__ import main

_STUDY: Final = '[platform]\nhosts = 2\n[workload]\njobs = 9\nduration = 60\nuser = "ada"\n'


@pytest.mark.asyncio
async def test_each_drawing_is_a_png_of_twice_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    python = await python_with(["resvg-py==0.5.0"], "resvg_py", tmp_path)
    found = await execute([python, "-c", "import resvg_py; print(resvg_py.__path__[0])"], tmp_path, {})
    assert 0 == found.status, found
    monkeypatch.setattr(sys, "path", [str(Path(found.out.strip()).parent), *sys.path])
    (tmp_path / "study.toml").write_text(_STUDY)
    drawings = tmp_path / "drawings"
    assert 0 == main(["simulate", "plot", str(tmp_path / "study.toml"), str(drawings), "--png"])
    assert 8 == len(capfd.readouterr().out.splitlines())
    for svg in sorted(drawings.glob("*.svg")):
        png = svg.with_suffix(".png").read_bytes()
        box = ET.fromstring(svg.read_text()).attrib["viewBox"].split()
        assert b"\x89PNG\r\n\x1a\n" == png[:8]
        assert tuple(2 * round(float(side)) for side in box[2:]) == struct.unpack(">II", png[16:24])
        assert len(set(png)) > 100, "it is not one colour"
