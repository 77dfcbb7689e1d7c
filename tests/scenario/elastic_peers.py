"""
Others' machines for pools of workers, with the real worker's program on each: instances of moto, pilots of a real Slurm, and faults
between them and the provisioner.
"""

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from tests.conformance.providers.ec2_machines import ENDS, Ec2Machines
from tests.conformance.providers.fault_proxy import Answer, Asked, FaultProxy, Forward

from kettle.testing.servers.slurm import PARTITION, SlurmCluster

PROGRAM: Final = str(Path(sys.executable).parent / "kettle")
_CREDENTIAL: Final = "[default]\naws_access_key_id = {key}\naws_secret_access_key = very-secret\n"


class Peer(Protocol):
    """Somebody who has machines."""

    name: str
    """Of its table and of its pool."""

    @property
    def table(self) -> dict[str, Any]:
        """Its table of `[provisioner.providers]`."""
        ...

    @property
    def offer(self) -> str:
        """The lines of an offer that only this provider has."""
        ...

    def there(self) -> list[str]:
        """The machines that it has, by its own names for them."""
        ...

    def take_back(self, handle: str) -> None:
        """One of them ends, and nobody was told."""
        ...


class Cloud:
    """An EC2: moto behind a proxy of faults; what its instances run is run on this host."""

    name = "cloud"

    def __init__(self, url: str, place: Path) -> None:
        self.proxy: Final = FaultProxy(url)
        self.machines: Final = Ec2Machines(url, place)
        self.credentials: Final = place / "credentials"
        self.key = "first"
        """The only credential that it knows."""
        self.use_credential(self.key)
        self.refused: Final[list[Asked]] = []
        """What was asked with another one."""
        self.proxy.faults.extend((self._known_only, self.machines.fault))

    def use_credential(self, key: str) -> None:
        """Have this one in the provisioner's file."""
        stage = self.credentials.with_suffix(".new")
        stage.write_text(_CREDENTIAL.format(key=key))
        stage.replace(self.credentials)

    @property
    def table(self) -> dict[str, Any]:
        """Its table of `[provisioner.providers]`."""
        return {
            "kind": "ec2",
            "region": "us-east-1",
            "endpoint": self.proxy.url,
            "credentials_file": str(self.credentials),
            "program": PROGRAM,
            "power_off": ENDS,
            "patience": 5.0,
        }

    @property
    def offer(self) -> str:
        """An image that moto has."""
        return 'template = "ami-12c6146b"\nflavour = "t3.micro"'

    async def _known_only(self, asked: Asked, forward: Forward) -> Answer:
        """Moto believes everybody."""
        if f"Credential={self.key}/" in asked.headers.get("Authorization", ""):
            return await forward(asked)
        self.refused.append(asked)
        body = "<Response><Errors><Error><Code>AuthFailure</Code><Message>who are you</Message></Error></Errors></Response>"
        return Answer(401, {"Content-Type": "text/xml"}, body.encode())

    def there(self) -> list[str]:
        """The instances that run."""
        return sorted(self.machines.running())

    def take_back(self, handle: str) -> None:
        """An instance is terminated by somebody else."""
        self.machines.client.terminate_instances(InstanceIds=[handle])
        self.machines.look()


def creates(asked: Asked) -> bool:
    """Whether an instance is asked for, and not whether it could be."""
    return asked.action == "RunInstances" and asked.field("DryRun") != "true"


@asynccontextmanager
async def cloud(url: str, place: Path) -> AsyncGenerator[Cloud]:
    """One while the context lasts; nothing that its instances run is left."""
    place.mkdir()
    made = Cloud(url, place)
    await made.proxy.open()
    try:
        yield made
    finally:
        await asyncio.to_thread(made.machines.end)
        await made.proxy.close()


class Pilots:
    """A Slurm, whose `sbatch` may fail as its network would."""

    name = "pilots"

    def __init__(self, cluster: SlurmCluster, place: Path) -> None:
        self.cluster: Final = cluster
        self.place: Final = place
        """It has to be the first of the provisioner's PATH."""
        self._fault: Final = place / "fault"
        (sbatch := place / "sbatch").write_text(
            f"""#!/bin/sh
{shutil.which("sbatch")} "$@" || exit
fault=$(cat {self._fault} 2>/dev/null) && rm {self._fault}
case "$fault" in
    lost) kill -KILL $$ ;;
    killed) kill -KILL $PPID ;;
esac
exit 0
"""
        )
        sbatch.chmod(sbatch.stat().st_mode | stat.S_IXUSR)
        self.program: Final = place / "kettle"
        self.boots()

    def boots(self, before: str = "") -> None:
        """What the program of each pilot does before it is the worker's."""
        stage = self.place / "kettle.new"
        stage.write_text(f'#!/bin/sh\n{before}\nexec {PROGRAM} "$@"\n')
        stage.chmod(0o755)
        stage.replace(self.program)

    @contextmanager
    def fault(self, what: str) -> Generator[None]:
        """
        The next `sbatch` submits, and then `lost`: says nothing; `killed`: kills who asked.  It has happened when this is over.
        """
        self._fault.write_text(what)
        yield
        assert not self._fault.exists()

    @property
    def table(self) -> dict[str, Any]:
        """Its table of `[provisioner.providers]`."""
        return {
            "kind": "slurm",
            "configuration": str(self.cluster.configuration),
            "logs": str(self.cluster.place),
            "program": str(self.program),
        }

    @property
    def path(self) -> str:
        """PATH of the provisioner."""
        return f"{self.place}{os.pathsep}{os.environ['PATH']}"

    @property
    def offer(self) -> str:
        """The partition."""
        return f'template = "{PARTITION}"'

    def there(self) -> list[str]:
        """The jobs that have not ended."""
        return sorted(self.cluster.run("squeue", "--noheader", "--me", "--format=%i").split())

    def take_back(self, handle: str) -> None:
        """A pilot is killed by the administrator."""
        self.cluster.run("scancel", "--signal=KILL", "--full", handle)


Boot = Callable[[Path], list[str]]


def late(seconds: int) -> Boot:
    """Instances whose program starts so much later."""
    return lambda script: ["sh", "-c", f'sleep {seconds}; exec sh "$0"', str(script)]


def never(script: Path) -> list[str]:
    """Instances that stay where they are when they are switched on."""
    del script
    return ["sleep", "600"]


def stays(script: Path) -> list[str]:
    """Instances that do not switch themselves off."""
    return ["sh", "-c", 'sh "$0"; sleep 600', str(script)]
