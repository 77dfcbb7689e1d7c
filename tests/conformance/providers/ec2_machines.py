"""
What moto lacks of a cloud: instances that run.

For each instance that runs, its user data is run as a process; the instance is terminated when the process ends, as one that
switches itself off is, and everything that the process has started is killed when the instance is terminated.
"""

import asyncio
import base64
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.loaders import Loader
from tests.conformance.providers.fault_proxy import Answer, Asked, Forward

from kettle.testing.patience import PATIENCE_S
from kettle_services.provisioner.providers.processes import MARK, kill_tree

_MODELS: Final = Loader()
"""Reads what botocore knows of a service once, since that is megabytes."""
ENDS: Final = "true"
"""The command that user data of tests has in place of `shutdown`, since they run on this machine."""


class Ec2Machines:
    """The machines of one moto."""

    def __init__(self, endpoint: str, place: Path) -> None:
        session = botocore.session.Session()
        session.register_component("data_loader", _MODELS)
        session.set_credentials("any", "any")
        once = Config(retries={"total_max_attempts": 1})
        self.client: Final[Any] = session.create_client(
            "ec2", region_name="us-east-1", endpoint_url=endpoint, config=once
        )
        self.boot: Callable[[Path], list[str]] = lambda script: ["sh", str(script)]
        """The command that runs the user data of an instance, by the path of it."""
        self._place: Final = place
        self._processes: Final[dict[str, subprocess.Popen[bytes]]] = {}
        self._waiting: Final[list[Thread]] = []
        self._ending = False
        self._looking: Final = Lock()

    async def fault(self, asked: Asked, forward: Forward) -> Answer:
        """As a fault of the proxy: look after whatever changes instances."""
        answer = await forward(asked)
        if asked.action in {"RunInstances", "TerminateInstances"}:
            await asyncio.to_thread(self.look)
        return answer

    def look(self) -> None:
        """Start and end processes as instances say."""
        with self._looking:
            running = self.running()
            for instance, process in self._processes.items():
                if instance not in running:
                    kill_tree(self._mark(instance), _root(process))
            for instance in sorted(running - self._processes.keys()):
                self._start(instance)

    def _start(self, instance: str) -> None:
        said = self.client.describe_instance_attribute(InstanceId=instance, Attribute="userData")
        script = base64.b64decode(said["UserData"].get("Value", ""))
        assert b"shutdown -" not in script, "it would switch this machine off"
        path = self._place / instance
        path.write_bytes(script)
        with self._place.joinpath(f"{instance}.log").open("wb") as console:
            process = subprocess.Popen(
                self.boot(path),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env={name: value for name, value in os.environ.items() if not name.startswith("KETTLE_")}
                | {MARK: self._mark(instance)},
                start_new_session=True,
            )
        self._processes[instance] = process
        self._waiting.append(Thread(target=self._until_off, args=(instance, process)))
        self._waiting[-1].start()

    def _until_off(self, instance: str, process: "subprocess.Popen[bytes]") -> None:
        process.wait()
        if not self._ending:
            kill_tree(self._mark(instance), None)
            self.client.terminate_instances(InstanceIds=[instance])

    def _mark(self, instance: str) -> str:
        return str(self._place / instance)

    def running(self) -> set[str]:
        """The instances that run."""
        running: set[str] = set()
        following: dict[str, str] = {}
        while True:
            page = self.client.describe_instances(**following)
            for reservation in page["Reservations"]:
                running |= {
                    each["InstanceId"]
                    for each in reservation["Instances"]
                    if each["State"]["Name"] == "running"
                }
            if not page.get("NextToken"):
                return running
            following = {"NextToken": page["NextToken"]}

    @property
    def started(self) -> set[str]:
        """The instances that run or have run."""
        return set(self._processes)

    def end(self) -> None:
        """End everything."""
        self._ending = True
        for instance, process in self._processes.items():
            kill_tree(self._mark(instance), _root(process))
        for each in self._waiting:
            each.join(PATIENCE_S)


def _root(process: "subprocess.Popen[bytes]") -> int | None:
    return process.pid if process.poll() is None else None
