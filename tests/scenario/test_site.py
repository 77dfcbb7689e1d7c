"""
The page "A site in an hour", carried out: each of its commands on the machine that its prompt names, with the answer that stands
below it, on machines in network namespaces.
"""

import re
import shlex
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kettle.pool.personal_settings import Tables, render
from kettle.pool.units import Kind, name_of
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import SHORT, merged

from .accounts import Person, people
from .machines import Machine, machines

PAGE = Path(__file__).parents[2] / "docs/how-to/a-site-in-an-hour.md"
UNITS = Path(__file__).parents[2] / "infra/systemd"
NAMES = ("server", "ap1", "ap2", "w1", "w2", "w3")
FENCE = re.compile(r"^```(\w+)(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(rf"^(?:(\w+)@)?({'|'.join(NAMES)})[#$] (.*)$")


STARTS = re.compile(r"kettle up|--start")
DENY_WRITE_EXECUTE = "import ctypes, os, sys; assert not ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""What systemd does for MemoryDenyWriteExecute, by means of the kernel's own."""


def as_its_unit(machine: str) -> list[str]:
    """
    What of its unit can be had without systemd: capabilities, no new privileges, no memory that is written and
    executed.
    """
    kind: Kind = "server" if machine == "server" else "access-point" if machine.startswith("ap") else "worker"
    unit = (UNITS / name_of(kind)).read_text()
    said = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))
    kept = ",".join(f"+{each.removeprefix('CAP_').lower()}" for each in said["CapabilityBoundingSet"].split())
    words = ["setpriv", f"--bounding-set=-all,{kept}"]
    if said["NoNewPrivileges"] == "yes":
        words.append("--no-new-privs")
    if said.get("MemoryDenyWriteExecute") == "yes":
        words += [sys.executable, "-c", DENY_WRITE_EXECUTE]
    return words


class Step:
    """A command of the page, and what it is said to answer."""

    def __init__(self, person: str, machine: str, command: str) -> None:
        self.person = person
        self.machine = machine
        self.command = command
        self.answers: list[str] = []


def steps() -> Iterator[Step | tuple[str, list[str], str]]:
    """Commands and files, as they follow on the page."""
    for kind, rest, body in FENCE.findall(PAGE.read_text()):
        if kind != "console":
            yield kind, rest.split(), body
            continue
        step: Step | None = None
        for line in body.splitlines():
            if found := PROMPT.match(line):
                if step is not None:
                    yield step
                step = Step(found[1] or "", found[2], found[3])
            elif step is not None:
                step.answers.append(line)
        if step is not None:
            yield step


class Site:
    """The machines of the page, and its persons."""

    def __init__(self, made: dict[str, Machine], persons: dict[str, Person]) -> None:
        self.machines = made
        self.persons = persons

    def real(self, text: str) -> str:
        """The page's persons are accounts of this machine, under other names."""
        for name, person in self.persons.items():
            text = re.sub(rf"\b{name}\b", person.name, text)
        return text

    def do(self, step: Step) -> None:
        machine, command = self.machines[step.machine], self.real(step.command)
        if command.startswith("scp "):
            self._copy(machine, command)
            return
        environ: dict[str, str] = {}
        cwd = "/mnt"
        if step.person:
            person = self.persons[step.person]
            environ, cwd = {"KETTLE_HOME": f"/run/kettle/{person.name}"}, str(person.work)
        limits = as_its_unit(step.machine) if STARTS.search(command) else []
        done = machine.run(*limits, "sh", "-c", command, environ=environ, cwd=cwd)
        assert 0 == done.status, (
            f"{step.machine}: {command}\n{done.said}\n{self.logs(machine)}\n{self.logs(self.machines[NAMES[0]])}"
        )
        for answer in step.answers:
            assert self.real(answer) in done.said, f"{step.machine}: {command}\n{done.said}"

    def _copy(self, machine: Machine, command: str) -> None:
        _, name, *places = shlex.split(command)
        for place in places:
            target = self.machines[place.removesuffix(":")].work / name
            target.write_bytes((machine.work / name).read_bytes())

    def change(self, names: list[str], body: str) -> None:
        """What the page says in the middle of a settings file."""
        header, *lines = self.real(body).splitlines()
        for name in names:
            path = self.machines[name].home / "kettle.toml"
            path.write_text(path.read_text().replace(header, "\n".join([header, *lines]), 1))

    def logs(self, machine: Machine) -> str:
        """The end of what the daemons wrote."""
        files = sorted((machine.home / "log").glob("*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in files)


def of_machine(name: str, number: int, template: Path) -> str:
    """What each machine of a test says already when it joins: short times, and little of this machine."""
    own: dict[str, Any] = {"num_cpus": 2, "memory": 512, "slot_uid_base": 1_700_000_000 + 1000 * number}
    tables: Tables = merged(SHORT, {"master": {"postgres_template": str(template)}, "startd": own})
    return render(tables)


@contextmanager
def site(directory: Path, template: Path) -> Generator[Site]:
    with people(2) as (ada, bob), machines(directory, NAMES, domain="site.example") as made:
        found = Site(made, {"ada": ada, "bob": bob})
        for number, (name, machine) in enumerate(made.items()):
            machine.home.mkdir(mode=0o700)
            (machine.home / "kettle.toml").write_text(of_machine(name, number, template))
        try:
            yield found
        finally:
            for machine in reversed(made.values()):
                machine.run("kettle", "down")


@pytest.mark.skipif(not selection.servers_are_ours(), reason="sets up servers of its own")
def test_the_page_is_right(tmp_path: Path, template: Path) -> None:
    """
    A server, two access points and three machines become a pool by the commands of the page: people's jobs of both queues run on
    all machines, on which nothing listens, and who leaves is gone.
    """
    with site(tmp_path, template) as here:
        described = {
            rest[0]: body
            for kind, rest, body in (s for s in steps() if isinstance(s, tuple))
            if kind == "text"
        }
        for person in here.persons.values():
            for name, body in described.items():
                person.write(name, body)
        for step in steps():
            if isinstance(step, Step):
                if "leave" in step.command and "w3" == step.machine:
                    looked_at(here)
                here.do(step)
            elif step[0] == "toml":
                here.change(step[1], step[2])
        for name in ("w3", "ap2"):
            assert not list((here.machines[name].home / "credentials").glob("*.creds")), name
        listed = here.machines["server"].run("kettle", "worker", "list").said
        assert ("w1" in listed, "w3" in listed) == (True, False), listed


def looked_at(here: Site) -> None:
    """What the page says about the pool while it is whole."""
    hosts: set[str] = set()
    for person in here.persons.values():
        assert [f"1.{proc}\n" for proc in range(6)] == [
            (person.work / f"out.{proc}").read_text() for proc in range(6)
        ]
        hosts |= {(person.work / f"where.{proc}").read_text().strip() for proc in range(6)}
    assert hosts <= {"w1", "w2", "w3"}
    for name in ("ap1", "ap2", "w1", "w2", "w3"):
        assert set() == here.machines[name].listening(), name
    server = here.machines["server"].listening()
    assert {"107E", "25AB"} == {each.rpartition(":")[2] for each in server}
