"""The way to a subcommand."""

import argparse
import importlib
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from kettle_services.cli.__main__ import main
from kettle_services.cli.commands import COMMANDS, module_of


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` says what a command does, and commands that have something to show show it by example."""
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    said = capsys.readouterr().out
    assert 0 == ended.value.code
    assert said.startswith(f"usage: kettle {name}")
    assert importlib.import_module(module_of(name)).HELP.splitlines()[0] in said
    if name not in {"demo", "version"}:
        assert f"kettle {name}" in said.split("examples:")[1]


@pytest.mark.parametrize("words", [["events"], ["history"], ["log", "show"]])
@pytest.mark.parametrize("since", ["10m", "-10m"])
def test_every_command_reads_times_alike(
    words: list[str], since: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """
    So long ago is written with a minus sign or without, wherever a time is taken: what is missing is the pool alone.
    """
    assert 1 == main([*words, "--since", since, "--home", str(tmp_path / "none")])
    assert "no pool is up" in capsys.readouterr().err


def test_a_range_of_frames_that_ends_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused, rather than answered with nothing."""
    with pytest.raises(SystemExit) as ended:
        main(["log", "show", "schedd.ap1", "--frame", "9:2"])
    assert 2 == ended.value.code
    assert "it ends before it begins" in capsys.readouterr().err


def test_every_command_but_services_has_json() -> None:
    """
    Programs need not read tables; what runs beside a job, speaks with a program, or writes a script or a picture has the
    command's streams to itself.
    """
    without: set[str] = set()
    for name in COMMANDS:
        parser = argparse.ArgumentParser(name)
        importlib.import_module(module_of(name)).arguments(parser)
        without |= {leaf.prog for leaf in _leaves(parser) if "--json" not in leaf.format_help()}
    assert {
        "run",
        "ce convert",
        "classad convert",
        "exec",
        "ssh",
        "completion",
        "mcp",
        "log roles",
        "dag graph",
        "dag halt",
        "dag resume",
        "pool example",
        "worker run",
    } == without


def _leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The commands that have no further commands below them."""
    below: list[argparse.ArgumentParser] = []
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]  # there is no public list
        if isinstance(action.choices, dict):
            commands = cast("dict[str, argparse.ArgumentParser]", action.choices)
            below += [leaf for each in commands.values() for leaf in _leaves(each)]
    return below or [parser]


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is hidden."""
    assert 0 == main(["--help"])
    said = capsys.readouterr().out
    assert [] == [name for name in COMMANDS if f"  {name} " not in said]


def test_a_slip_is_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest command is named."""
    assert 2 == main(["submi", "x"])
    assert "did you mean kettle submit?" in capsys.readouterr().err


def test_nothing_heavy_is_loaded() -> None:
    """A command that needs no pool loads no driver, and none loads a database's."""
    code = (
        "import sys, kettle_services.cli.__main__ as m; m.main(['version']); print(*sys.modules, sep='\\n')"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert set() == {"nats", "asyncpg", "aiohttp", "numpy", "rich", "kettle.submit"} & set(
        found.stdout.split()
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("quue", "q"),
        ("stat", "status"),
        ("queue", "q"),
        ("Submt", "submit"),
        ("remove", "rm"),
        ("configg", "config"),
    ],
)
def test_what_was_meant_is_suggested(capsys: pytest.CaptureFixture[str], typed: str, meant: str) -> None:
    """Misspelt commands, and words that other systems have for them."""
    assert 2 == main([typed])
    assert f"did you mean kettle {meant}?" in capsys.readouterr().err
