"""A container before it is started, and what can start it."""

import select
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from kettle.execution.containers.policy import FoundRuntime, Network
from kettle.execution.containers.root_directory import Mount
from kettle.execution.processes.launch import Program
from kettle.execution.system.cgroup import Cgroup

AREA: Final = "container"
"""
What a container has in the area of its sandbox (`area_of`): what is removed with that needs nobody else to remember it.  Those of
further containers begin with this name.
"""
MARK: Final = "_KETTLE_SANDBOX"
"""The variable by which a startd finds the processes of a container: paths inside are not those outside."""
STARTING_S: Final = 30.0
"""How long a runtime may take for a step."""
_LOOKING_S: Final = 0.5


class StartCheck(Protocol):
    """Raises an exception if the job must not be started; it is called repeatedly while a runtime works."""

    def __call__(self, pid: int = 0) -> None:
        """`pid`: a process of the container, which is ready; 0: it is not."""
        ...


def no_check(pid: int = 0) -> None:
    """The check of those who keep nothing from being started."""


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One job's container."""

    program: Program
    """As it is seen inside, except for its streams."""
    sandbox: str
    """Whose container it is."""
    area: str
    """A directory of the starter's for this container, which the job cannot exchange."""
    skeleton: str
    """The root directory (see `roots`)."""
    mounts: Sequence[Mount]
    network: Network = "host"
    runtime: FoundRuntime | None = None
    """What was chosen to start it."""
    closed: str = ""
    """
    The directory of the image, if the job's account cannot get to it: there are those of others beside it.
    """
    image: str = ""
    """The image in an engine's store: it makes the root itself."""
    fresh: bool = False
    """The image was got for this container, and not there before."""
    size: int = 0
    """Bytes of the image's files; 0: not known."""


class ContainerRuntime(Protocol):
    """A way of running programs in containers."""

    def start(self, box: ContainerSpec, cgroup: Cgroup | None, check: StartCheck) -> int:
        """
        Start the container, in the control group; the pid of the child of ours whose end is the job's end.

        `check` is called while it is made, and when it is ready and the job's program has not yet been executed.

        Raises:
            ContainerError: it could not be started, and nothing of it runs.
            LaunchError: a stream of the job could not be opened, or the runtime itself could not be executed.
        """
        ...

    def end(self) -> None:
        """
        Remove what the runtime has outside of the area, when no process of the container lives any more.
        """
        ...


def awaited(fd: int, check: StartCheck) -> bool:
    """
    Whether a descriptor can be read within the time of a step; meanwhile what `check` looks at is not forgotten.
    """
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    left = STARTING_S
    while not poll.poll(min(left, _LOOKING_S) * 1000):
        left -= _LOOKING_S
        if left <= 0:
            return False
        check()
    return True
