"""`kettle completion`: the scripts complete what the commands declare, in the shells themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle_services.cli.__main__ import main
from kettle_services.cli.commands import COMMANDS
from kettle_services.cli.completion import SHELLS, choices


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The script of each shell as a file."""
    found, place = choices(), tmp_path_factory.mktemp("completion")
    made: dict[str, Path] = {}
    for shell, make in SHELLS.items():
        made[shell] = place / f"kettle.{shell}"
        made[shell].write_text(make(found))
    return made


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers after these words; the last one is being typed."""
    line = " ".join(f"'{word}'" for word in words)
    ask = (
        f'source "{script}"; COMP_WORDS=(kettle {line}); COMP_CWORD={len(words)}; _kettle; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert "" == done.stderr
    return set(done.stdout.split())


def test_bash_completes_what_is_declared(scripts: dict[str, Path]) -> None:
    """Commands, subcommands, options and values, whatever options stand between."""
    assert set(COMMANDS) == completed(scripts["bash"], "")
    assert {"submit", "suspend"} == completed(scripts["bash"], "su")
    assert {"check", "show", "diff"} <= completed(scripts["bash"], "config", "")
    assert {"--changed"} == completed(scripts["bash"], "config", "show", "--json", "--ch")
    assert {"--json"} == completed(scripts["bash"], "q", "12", "--js")
    assert {"bash", "fish", "zsh"} <= completed(scripts["bash"], "completion", "")


def shell_says(shell: str, script: str) -> list[str]:
    """What a shell prints, if it is installed."""
    if shutil.which(shell) is None:
        pytest.skip(f"the shell {shell} is not installed")
    done = subprocess.run(
        [shell, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert "" == done.stderr
    return done.stdout.splitlines()


def test_fish_completes_with_meanings(scripts: dict[str, Path]) -> None:
    """As fish itself answers."""
    ask = f'source {scripts["fish"]}; complete -C "kettle {{}}"'
    assert "check\twhat is wrong with it" in shell_says("fish", ask.format("config "))
    assert ["--changed\tonly what is not the default"] == shell_says("fish", ask.format("config show --ch"))
    assert {"submit", "suspend"} == {line.partition("\t")[0] for line in shell_says("fish", ask.format("su"))}


def test_zsh_knows_the_same(scripts: dict[str, Path]) -> None:
    """The offers that its function makes."""
    ask = 'compdef() { }; source %s; _kettle_offers "%s"; print -l -- $offers'
    assert "check:what is wrong with it" in shell_says("zsh", ask % (scripts["zsh"], "config"))
    assert "--changed:only what is not the default" in shell_says(
        "zsh", ask % (scripts["zsh"], "config show")
    )


def test_every_command_is_in_each_script(scripts: dict[str, Path]) -> None:
    """Nothing is written down twice, so nothing is forgotten."""
    for script in scripts.values():
        text = script.read_text()
        assert all(f"'{name}" in text or f" {name} " in text for name in COMMANDS)


def test_the_command_prints_the_lines_of_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    """As they are: a script on one line completes nothing."""
    for shell, make in SHELLS.items():
        assert 0 == main(["completion", shell])
        assert make(choices()).rstrip("\n") == capsys.readouterr().out.rstrip("\n")
