"""
What moto lacks of a cloud: instances that run.

For each instance that runs, its user data is run as a process; the instance is terminated when the process ends, as one that
switches itself off is, and the process is ended when the instance is terminated.
"""

import asyncio
import base64
import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.loaders import Loader
from tests.conformance.providers.fault_proxy import Answer, Asked, Forward

from kettle.testing.patience import PATIENCE_S

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
        self._place: Final = place
        self._processes: Final[dict[str, subprocess.Popen[bytes]]] = {}

    async def fault(self, asked: Asked, forward: Forward) -> Answer:
        """As a fault of the proxy: look after whatever changes instances."""
        answer = await forward(asked)
        if asked.action in {"RunInstances", "TerminateInstances"}:
            await asyncio.to_thread(self.look)
        return answer

    def look(self) -> None:
        """Start and end processes as instances say."""
        running = self._running()
        for instance, process in self._processes.items():
            if instance not in running:
                _ask_to_end(process)
        for instance in sorted(running - self._processes.keys()):
            said = self.client.describe_instance_attribute(InstanceId=instance, Attribute="userData")
            script = base64.b64decode(said["UserData"]["Value"])
            assert b"shutdown -" not in script, "it would switch this machine off"
            path = self._place / instance
            path.write_bytes(script)
            self._processes[instance] = subprocess.Popen(
                ["sh", path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def _running(self) -> set[str]:
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

    def end(self) -> None:
        """End every process."""
        for process in self._processes.values():
            _ask_to_end(process)
        for process in self._processes.values():
            process.wait(PATIENCE_S)


def _ask_to_end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
