"""
A site of several hosts that is upgraded host by host, while people submit: old and new services work side by side.
"""

import asyncio
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from kettle import VERSION, pool
from kettle.pool.personal_settings import Tables, render
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import SHORT, merged
from kettle_wire.iam_http import JOIN_PREFIX

from .machines import Ended, Machine, machines
from .previous_release import commit_before, packages_of, packages_of_tree

LONG = "KETTLE_TEST_LONG"
JOBS = int(os.environ.get("KETTLE_TEST_UPGRADE_JOBS", "1000"))
FROM = os.environ.get("KETTLE_TEST_UPGRADE_FROM", "")
AT_ONCE = 10
NEW = "99.0.0"
WITHIN_S = 1800.0
NAMES = ("server", "ap", "w1")
"""In the order in which they are upgraded, as the page about it says."""


class Host:
    """A machine of the site, with the packages that it runs."""

    def __init__(self, machine: Machine, packages: Path) -> None:
        self.machine = machine
        self._packages = packages
        """A link that is exchanged, as an installation is by `pip install --upgrade`."""

    def kettle(self, *words: str) -> Ended:
        """What a command of the version that is installed there comes to."""
        return self.machine.run("kettle", *words, environ={"PYTHONPATH": str(self._packages)})

    def said(self, *words: str) -> str:
        """What it prints; it has to succeed."""
        done = self.kettle(*words)
        assert 0 == done.status, f"{self.machine.name}: {' '.join(words)}\n{done.said}\n{self.logs()}"
        return done.said

    def install(self, packages: Path) -> None:
        """Have other packages in the place of those that there are."""
        stage = self._packages.with_name(f"{self._packages.name}.next")
        stage.symlink_to(packages)
        stage.replace(self._packages)

    def upgrade(self, packages: Path, version: str, server: "Host") -> float:
        """
        Install a version, and have an administrator start it; the seconds until everything of the host runs it.
        """
        began = time.monotonic()
        self.install(packages)
        server.said("restart", self.machine.name)
        while time.monotonic() < began + WITHIN_S:
            state = pool.state(self.machine.home)
            if state is not None and state.ready and state.version == version:
                return time.monotonic() - began
            time.sleep(0.05)
        raise AssertionError(f"{self.machine.name} does not come up as {version}\n{self.logs()}")

    def logs(self) -> str:
        """The end of what its daemons wrote."""
        files = sorted((self.machine.home / "log").glob("*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-1500:]}" for path in files)


class People:
    """Those who submit at the access point, one cluster after the other, and what each waited."""

    def __init__(self, host: Host, evidence: Path) -> None:
        self._host = host
        self.clusters: list[str] = []
        self.waits: list[float] = []
        (host.machine.work / "some.sub").write_text(
            "executable = /bin/sh\ntransfer_executable = false\nrequest_memory = 16\n"
            f"arguments = \"-c 'echo x >> {evidence}/$(Cluster).$(Process)'\"\nqueue {AT_ONCE}\n"
        )

    def submit(self, count: int) -> None:
        """So many jobs."""
        for _ in range(count // AT_ONCE):
            began = time.monotonic()
            said = self._host.said("submit", "some.sub")
            self.waits.append(time.monotonic() - began)
            self.clusters.append(said.split("submitted to cluster ")[1].rstrip(".\n"))


def settings(number: int, template: Path) -> str:
    """What each host says already when it joins: short times, and little of this machine."""
    own: Mapping[str, int] = {"num_cpus": 8, "memory": 512, "slot_uid_base": 1_700_100_000 + 1000 * number}
    tables: Tables = merged(SHORT, {"master": {"postgres_template": str(template)}, "startd": own})
    return render(tables)


@contextmanager
def site(place: Path, template: Path, packages: Path) -> Generator[dict[str, Host]]:
    """A server, an access point and a machine, which all run these packages."""
    with machines(place, NAMES, domain="site.example") as made:
        hosts: dict[str, Host] = {}
        for number, (name, machine) in enumerate(made.items()):
            machine.home.mkdir(mode=0o700)
            (machine.home / "kettle.toml").write_text(settings(number, template))
            hosts[name] = Host(machine, place / f"packages-{name}")
            hosts[name].install(packages)
        server = hosts["server"]
        try:
            server.said("site", "init", "--pool", "physics", "--address", "server.site.example")
            server.said("up")
            for name, kind in (("ap", "schedd"), ("w1", "worker")):
                said = server.said(kind, "token", "create").split()
                (token,) = [word for word in said if word.startswith(f"{JOIN_PREFIX}.")]
                (hosts[name].machine.work / "token").write_text(token)
                hosts[name].said(kind, "join", "https://server.site.example:9643", "--token-file", "token")
                hosts[name].said("up")
            yield hosts
        finally:
            for name in reversed(NAMES):
                hosts[name].kettle("down")


def versions(server: Host) -> tuple[Ended, str]:
    """Whether the last step is refused, and what is said of the hosts."""
    return server.kettle("upgrade", "finish"), server.kettle("upgrade", "check").said


def upgraded(hosts: dict[str, Host], people: People, new: Path) -> dict[str, float]:
    """Host by host, with jobs submitted and run between any two steps; how long each took."""
    took: dict[str, float] = {}
    part = JOBS // (len(NAMES) + 1)
    people.submit(part)
    for name in NAMES:
        took[name] = hosts[name].upgrade(new, NEW, hosts[name if name == "ap" else "server"])
        finish, check = versions(hosts["server"])
        assert ("w1" == name) == (0 == finish.status), finish.said
        assert ("w1" == name) == (f"it runs Kettle {VERSION}" not in check), check
        began = len(people.clusters)
        people.submit(part)
        for cluster in people.clusters[began:]:  # these run while the next host is still old
            hosts["ap"].said("wait", cluster)
    return took


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: {JOBS} jobs and two versions ({LONG}=1 runs them)"
)
@pytest.mark.skipif(not selection.servers_are_ours(), reason="sets up servers of its own")
async def test_a_site_is_upgraded_host_by_host(tmp_path: Path, template: Path) -> None:
    """
    Between any two steps jobs go from a host of one version to one of the other; none is lost or runs twice, no command fails, and the
    last step is refused as long as one host is old.  The server's log is clean.
    """
    old = packages_of(FROM or commit_before(), tmp_path / "old")
    new = packages_of_tree(NEW, tmp_path / "new")
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    for path in (evidence, *tmp_path.parents[:2], tmp_path):
        path.chmod(0o777 if path == evidence else 0o755)
    with site(tmp_path, template, old) as hosts:
        people = People(hosts["ap"], evidence)
        took = await asyncio.to_thread(upgraded, hosts, people, new)
        for cluster in people.clusters:
            hosts["ap"].said("wait", cluster)
        hosts["server"].said("log", "check")
    lines = {path.name: path.read_text() for path in evidence.iterdir()}
    assert {f"{cluster}.{proc}" for cluster in people.clusters for proc in range(AT_ONCE)} == set(lines)
    figures = {
        "jobs": len(lines), "restart_s": took, "submit_max_s": max(people.waits),
        "submit_p50_s": sorted(people.waits)[len(people.waits) // 2],
        "ran twice": sum(text != "x\n" for text in lines.values()),
    }  # fmt: skip
    (tmp_path / "figures.json").write_bytes(msgspec.json.encode(figures))
    assert 0 == figures["ran twice"], figures
