"""The files that a shell finds."""

import subprocess
import sys
from pathlib import Path

import pytest

from kettle_services.condor import compiled_launcher, launchers
from kettle_services.condor.start import COMMANDS


def test_only_what_has_changed_is_written_again(tmp_path: Path) -> None:
    """And what is no command any more goes."""
    place = launchers.install(tmp_path)
    assert sorted([*COMMANDS, launchers.HTCONDOR]) == sorted(path.name for path in place.iterdir())
    before = {path.name: path.stat().st_ino for path in place.iterdir()}
    (place / "condor_q").write_text("damaged")
    (place / "condor_old").write_text("")
    launchers.install(tmp_path)
    after = {path.name: path.stat().st_ino for path in place.iterdir()}
    assert {"condor_q"} == {name for name, inode in after.items() if inode != before.get(name)}
    assert before.keys() == after.keys()


def test_a_launcher_needs_no_environment(tmp_path: Path) -> None:
    place = launchers.install(tmp_path)
    said = subprocess.run(
        [place / "condor_version"], env={}, capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.startswith("$CondorVersion: ")
    assert "" == said.stderr


def test_where_there_is_a_compiler_a_compiled_program_asks(tmp_path: Path) -> None:
    """Where no server carries a command out, it becomes the interpreter that does, with all words and variables."""
    place = launchers.install(tmp_path / "commands")
    program = tmp_path / "commands" / compiled_launcher.NAME
    if not program.exists():
        pytest.skip("no C compiler is installed")
    assert (place / "condor_version").read_text().startswith(f"#!{program}\n# condor_version ")
    assert not (place / "condor_tail").read_text().startswith(f"#!{program}\n")
    said = subprocess.run(
        [place / "condor_config_val", "A_KNOB"],
        env={"_condor_A_KNOB": "b  c", "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ("b  c\n", "") == (said.stdout, said.stderr)
    before = program.stat().st_ino
    launchers.install(tmp_path / "commands")
    assert before == program.stat().st_ino
    program.write_bytes(b"of another release")
    launchers.install(tmp_path / "commands")
    assert before != program.stat().st_ino


def test_without_a_compiler_an_interpreter_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a program stay that nothing here could have made."""
    (tmp_path / compiled_launcher.NAME).write_bytes(b"of another release")
    monkeypatch.setenv("PATH", str(tmp_path))
    place = launchers.install(tmp_path)
    assert (place / "condor_q").read_text() == launchers.launcher("condor_q")
    assert not (tmp_path / compiled_launcher.NAME).exists()


def test_a_damaged_launcher_says_what_to_do(tmp_path: Path) -> None:
    if (program := compiled_launcher.compile_into(tmp_path)) is None:
        pytest.skip("no C compiler is installed")
    damaged = tmp_path / "condor_q"
    damaged.write_text(f"#!{program}\n# condor_q\n")
    damaged.chmod(0o755)
    said = subprocess.run([damaged], capture_output=True, text=True, check=False, timeout=60)
    assert 127 == said.returncode
    assert said.stderr == f"{program}: {damaged} is damaged: kettle condor-env writes it again\n"


def test_an_interpreter_may_have_any_name(tmp_path: Path) -> None:
    """The first line of a script can hold neither a blank nor a long path; then a shell starts it."""
    odd = tmp_path / "it's a place" / "python"
    odd.parent.mkdir()
    odd.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    odd.chmod(0o755)
    script = tmp_path / "condor_version"
    script.write_text(launchers.launcher("condor_version", str(odd)))
    script.chmod(0o755)
    said = subprocess.run([script], env={}, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.startswith("$CondorVersion: ")
    long = launchers.launcher("condor_q", "/" + "x" * 200)
    assert long.startswith("#!/bin/sh\n")


def elsewhere(program: str, installation: Path) -> subprocess.CompletedProcess[str]:
    """A program in an environment without Kettle, which has what `kettle condor-env` prints."""
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}"
    return subprocess.run(
        [python, "-sSc", program],
        env={"PYTHONPATH": str(installation / launchers.PYTHON)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


ALL_OF_IT = r"""
import sys, classad, classad2, htcondor, htcondor2
assert 3 == classad2.ExprTree("1 + 2").eval()
assert True is classad2.ExprTree('regexp("a+", "caat")').eval()
[job] = htcondor2.Submit("executable = /bin/true\nqueue").jobs()
import kettle.bus.nats
print(job["Cmd"])
"""


def test_the_bindings_are_found_from_an_environment_without_kettle(tmp_path: Path) -> None:
    """PYTHONPATH leads to all that they need, by the file that is written beside the launchers."""
    launchers.install(tmp_path)
    said = elsewhere(ALL_OF_IT, tmp_path)
    assert ("/bin/true\n", "") == (said.stdout, said.stderr)


def test_an_environment_of_another_python_is_told_what_to_do(tmp_path: Path) -> None:
    launchers.install(tmp_path)
    about = tmp_path / launchers.INSTALLATION
    about.write_text(about.read_text().replace(sys.implementation.cache_tag or "", "cpython-30"))
    said = elsewhere("import htcondor2", tmp_path)
    assert said.stderr.splitlines()[-1].startswith("ImportError: the Kettle of /"), said.stderr
    assert "is installed for cpython-30" in said.stderr
    assert "install Kettle into this environment as well" in said.stderr


def test_the_noun_verb_command_says_where_it_is(tmp_path: Path) -> None:
    """It is HTCondor's own, from its Python package."""
    place = launchers.install(tmp_path)
    said = subprocess.run(
        [Path(sys.base_prefix) / "bin" / "python3", "-sS", place / launchers.HTCONDOR],
        env={}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert 1 == said.returncode
    assert said.stderr.endswith("pip install htcondor\n")


HEAVY = {"argparse", "asyncio", "email", "logging", "nats", "numpy", "ssl"}
LANGUAGE = {"kettle.classad.parser", "kettle.submit", "kettle.transforms"}
ROLES = {"kettle_wire.commands.schedd", "kettle_wire.events"}


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("q", HEAVY | LANGUAGE | ROLES),
        ("act", HEAVY | LANGUAGE | ROLES),
        ("submit", HEAVY | LANGUAGE | ROLES),
        ("status", HEAVY | LANGUAGE | ROLES),
        ("vacate", HEAVY | LANGUAGE),
        ("now", HEAVY | LANGUAGE),
        ("userprio", HEAVY | LANGUAGE),
        ("transform_ads", HEAVY | LANGUAGE | ROLES),
    ],
)
def test_a_command_loads_no_more_than_it_needs(module: str, forbidden: set[str]) -> None:
    """Programs run them in loops: what is only sometimes needed is loaded then."""
    paths = launchers.module_paths()
    code = f"import sys; sys.path += {paths!r}; from kettle.client.connections import short_process as short; short.defer_loading(); import kettle_services.condor.start; "
    code += f"import kettle_services.condor.commands.{module}; print(*sys.modules, sep=chr(10))"
    said = subprocess.run(
        [sys.executable, "-ISc", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert set() == forbidden & set(said.stdout.split())


REMOVED_EARLY = """
import os, signal, sys
sys.path += {paths!r}
from kettle_services.condor.start import command

class Removal:
    def find_spec(self, name, path, target=None):
        if name == "kettle_services.condor.commands.dagman":
            os.kill(os.getpid(), signal.SIGUSR1)

sys.meta_path.insert(0, Removal())
command("condor_dagman")
"""


def test_condor_dagman_outlives_a_removal_that_comes_while_it_is_loaded() -> None:
    """It has still to run the FINAL node: without its job it ends with a sentence, not with the signal."""
    code = REMOVED_EARLY.format(paths=launchers.module_paths())
    said = subprocess.run(
        [sys.executable, "-IS", "-c", code], env={}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (1, True) == (said.returncode, "is the program of a job" in said.stderr), said
