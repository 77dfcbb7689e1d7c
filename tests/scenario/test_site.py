"""
The page "A site in an hour", carried out: each of its commands on the machine that its prompt names, with the answer that stands
below it, on machines in network namespaces.
"""

import asyncio
import re
import shlex
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.integration.iam.issuer import token_issuer

from kettle.pki.authority_files import AuthorityFiles
from kettle.pool.personal_settings import Tables, render
from kettle.pool.units import Kind, name_of
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import SHORT, merged

from .accounts import Person, people
from .machines import Machine, machines

PAGE = Path(__file__).parents[2] / "docs/how-to/a-site-in-an-hour.md"
UNITS = Path(__file__).parents[2] / "infra/systemd"
OF_THE_POOL = ("server", "ap1", "ap2", "w1", "w2", "w3")
NAMES = (*OF_THE_POOL, "login", "laptop")
"""The issuer's machine, and one that people have, which knows nothing of the pool."""
ISSUER = "https://login.site.example"
AUDIENCE = "https://server.site.example:9643"
BY_TOKEN = ("carol", "dave")
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


HISTORY_S = 60.0
BEHIND = re.compile(r"kettle (status|usage)\b")
"""Questions that are answered from what others tell, which is a moment behind."""


class Step:
    """A command of the page, and what it is said to answer."""

    def __init__(self, person: str, machine: str, command: str) -> None:
        self.person = person
        self.machine = machine
        self.command = command
        self.answers: list[str] = []

    @property
    def refused(self) -> bool:
        """Whether it complains under its own name."""
        verb = " ".join(self.command.split()[:2])
        return any(answer.startswith(f"{verb}: ") for answer in self.answers)


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

    def __init__(self, made: dict[str, Machine], persons: dict[str, Person], place: Path) -> None:
        """`persons`: those who have accounts; `place`: the directory of the condor_* commands."""
        self.machines = made
        self.persons = persons
        self.shells: dict[str, str] = {}
        """What people say first in each shell, by machine."""
        self._place = place

    def home_of(self, person: str) -> Path:
        """The directory of somebody who has no account, seen from outside."""
        return self.machines["laptop"].work / person

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
        if person := self.persons.get(step.person):
            environ, cwd = {"KETTLE_HOME": f"/run/kettle/{person.name}"}, str(person.work)
        elif step.person:
            cwd = f"/mnt/{step.person}"
            path = f"{self._place}:{Path(sys.executable).parent}:/usr/bin:/bin"
            environ = {"HOME": cwd, "KETTLE_HOME": f"{cwd}/.kettle", "PATH": path}
        limits = as_its_unit(step.machine) if STARTS.search(command) else []
        said_first = self.shells.get(step.machine, "")
        answers, until = [self.real(answer) for answer in step.answers], time.monotonic() + HISTORY_S
        while True:
            done = machine.run(*limits, "sh", "-c", said_first + command, environ=environ, cwd=cwd)
            complete = all(answer in done.said for answer in answers)
            if complete or not BEHIND.match(command) or time.monotonic() > until:
                break
            time.sleep(0.1)
        assert step.refused == bool(done.status), (
            f"{step.machine}: {command}\n{done.said}\n{self.logs(machine)}\n{self.logs(self.machines['server'])}"
        )
        assert complete, f"{step.machine}: {command}\n{done.said}"

    def _copy(self, machine: Machine, command: str) -> None:
        _, name, *places = shlex.split(command)
        source = machine.seen(name)
        for place in places:
            person, _, name = place.removesuffix(":").rpartition("@")
            target = self.machines[name].work / person / source.name
            target.write_bytes(source.read_bytes())

    def change(self, places: list[str], body: str) -> None:
        """What the page says in the middle of a settings file, table by table, or of a file that it names."""
        for place in places:
            name, _, file = place.partition(":")
            machine = self.machines[name]
            if file:
                machine.seen(file).write_text(body)
                continue
            path = machine.home / "kettle.toml"
            text = path.read_text()
            for table in self.real(body).split("\n\n"):
                header = table.splitlines()[0]
                text = text.replace(header, table, 1) if header in text else f"{text}\n{table}\n"
            path.write_text(text)

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
def site(directory: Path, template: Path, place: Path) -> Generator[Site]:
    with (
        people(2) as (ada, bob),
        machines(directory, NAMES, domain="site.example", more_servers=["login"]) as made,
    ):
        found = Site(made, {"ada": ada, "bob": bob}, place)
        for number, name in enumerate(OF_THE_POOL):
            made[name].home.mkdir(mode=0o700)
            (made[name].home / "kettle.toml").write_text(of_machine(name, number, template))
        try:
            yield found
        finally:
            for name in reversed(OF_THE_POOL):
                made[name].run("kettle", "down")


@asynccontextmanager
async def issuer_of(here: Site, directory: Path) -> AsyncGenerator[None]:
    """
    An issuer on a machine of its own, whose authority's certificate the server has, and tokens of it in the homes of two people.
    """
    authority, now = AuthorityFiles(directory / "login-pki"), datetime.now(UTC)
    trusted = authority.make("login", now=now)
    certificate = authority.issue([urlsplit(ISSUER).hostname or ""], "server", now=now)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.certificate, certificate.key)
    here.machines["server"].seen("/var/lib/kettle/login.pem").write_bytes(trusted.certificate.read_bytes())
    async with token_issuer(ISSUER, here.machines["login"].listener(443), tls) as issuer:
        for person in BY_TOKEN:
            here.home_of(person).mkdir()
            (here.home_of(person) / "token").write_text(issuer.token(person, AUDIENCE))
        yield


@pytest.mark.skipif(not selection.servers_are_ours(), reason="sets up servers of its own")
async def test_the_page_is_right(tmp_path: Path, template: Path, place: Path) -> None:
    """
    A server, two access points and three machines become a pool by the commands of the page: jobs of people with accounts and of
    people with tokens run on all machines, on which nothing listens, and who is banned or leaves is gone.
    """
    with site(tmp_path, template, place) as here:
        async with issuer_of(here, tmp_path):
            given_files(here)
            await asyncio.to_thread(carried_out, here)


def carried_out(here: Site) -> None:
    """The page, from its beginning to its end."""
    for step in steps():
        if isinstance(step, Step):
            if "leave" in step.command and "w3" == step.machine:
                looked_at(here)
                secrets_seen(here)
                audited(here)
            here.do(step)
            continue
        kind, rest, body = step
        if kind == "toml":
            here.change(rest, body)
        elif kind == "sh":
            here.shells |= dict.fromkeys(rest, body)
    for name in ("w3", "ap2"):
        assert not list((here.machines[name].home / "credentials").glob("*.creds")), name
    listed = here.machines["server"].run("kettle", "worker", "list").said
    assert ("w1" in listed, "w3" in listed) == (True, False), listed


def audited(here: Site) -> None:
    """The logs of the server and of an access point are whole, and the bus has nothing else."""
    for name in ("server", "ap1"):
        done = here.machines[name].run("kettle", "log", "check")
        assert not done.status, done.said


def secrets_seen(here: Site) -> None:
    """
    The environment of a job that has left its queue is seen by its owner, and by nobody of the same name
    elsewhere.
    """
    ada, ap1 = here.persons["ada"], here.machines["ap1"]
    environ = {"KETTLE_HOME": f"/run/kettle/{ada.name}"}
    ada.write("secret.sub", "executable = /bin/true\nenvironment = BIRD=canary\nqueue\n")

    def said(*words: str) -> str:
        done = ap1.run("kettle", *words, environ=environ, cwd=str(ada.work))
        assert not done.status, done.said
        return done.said

    cluster = said("submit", "secret.sub").split("submitted to cluster ")[1].rstrip(".\n")
    said("wait", cluster)
    # The history of a queue elsewhere is a moment behind.
    until = time.monotonic() + HISTORY_S
    while not (seen := said("history", "--long", cluster)).strip() and time.monotonic() < until:
        time.sleep(0.1)
    assert "BIRD=canary" in seen


def given_files(here: Site) -> None:
    """What the page describes is in everybody's directory."""
    for kind, rest, body in (step for step in steps() if isinstance(step, tuple)):
        if kind == "text":
            for person in here.persons.values():
                person.write(rest[0], body)
            for name in BY_TOKEN:
                (here.home_of(name) / rest[0]).write_text(body)


def looked_at(here: Site) -> None:
    """What the page says about the pool while it is whole."""
    hosts: set[str] = set()
    for cluster, work in [
        *((1, person.work) for person in here.persons.values()),
        (2, here.home_of("carol")),
    ]:
        assert [f"{cluster}.{proc}\n" for proc in range(6)] == [
            (work / f"out.{proc}").read_text() for proc in range(6)
        ]
        hosts |= {(work / f"where.{proc}").read_text().strip() for proc in range(6)}
    assert hosts <= {"w1", "w2", "w3"}
    for name in ("ap1", "ap2", "w1", "w2", "w3", "laptop"):
        assert set() == here.machines[name].listening(), name
    server = here.machines["server"].listening()
    assert {"107E", "25AB"} == {each.rpartition(":")[2] for each in server}
