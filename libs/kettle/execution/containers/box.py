"""
A container before it is started, and what can start it.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from kettle.execution.cgroups import Cgroup
from kettle.execution.containers.policy import Network
from kettle.execution.containers.roots import Mount
from kettle.execution.process import Program

AREA: Final = ".container"
"""In the sandbox: what is removed with it needs nobody else to remember it."""
MARK: Final = "_KETTLE_SANDBOX"
"""The variable by which a startd finds the processes of a container: paths inside are not those outside."""
STARTING_S: Final = 30.0
"""How long a runtime may take for a step: its starter hears nothing meanwhile."""

Check = Callable[[], None]
"""Raises whatever should keep the job from being started."""


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """
    One job's container.
    """

    program: Program
    """As it is seen inside, except for its streams."""
    area: str
    """A directory of the starter's in the sandbox, for this container."""
    skeleton: str
    """The root directory (see `roots`)."""
    mounts: Sequence[Mount]
    network: Network = "host"


class Runtime(Protocol):
    """
    A way of running programs in containers.
    """

    def start(self, box: Box, cgroup: Cgroup | None, check: Check) -> int:
        """
        Start the container, in the control group; the pid of the child of ours whose end is the job's end.

        `check` is called when the container is ready and the job's program has not yet been executed.

        Raises:
            ContainerError: it could not be started, and nothing of it runs.
            LaunchError: a stream of the job could not be opened, or the runtime itself could not be executed.
        """
        ...
