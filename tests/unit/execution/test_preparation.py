"""What prepares a container is a child with limits, which can be ended, and whose use is nobody's."""

import os
import resource
import select
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from tests.unit.own_process import alone

from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.preparation import MEMORY_BYTES, building
from kettle.execution.containers.runtimes.runtime import ContainerSpec
from kettle.execution.processes.launch import Program
from kettle.execution.system.linux import children_of

BOX = ContainerSpec(
    program=Program(path="/p", arguments=["a"], environment={"A": "b"}, directory="/", stdin="", stdout="", stderr="", descriptors=[]),
    sandbox="", area="/a", skeleton="/s", mounts=[],
)  # fmt: skip


def made(tmp_path: Path, work: Callable[[], tuple[ContainerSpec, int]]) -> tuple[ContainerSpec, int]:
    """What comes of `work` when it is waited for."""
    with building(work, str(tmp_path)) as builder:
        poll = select.poll()
        poll.register(builder, select.POLLIN)
        poll.poll(10_000)
        return builder.result()


def test_a_box_comes_back_and_the_lock_with_it(tmp_path: Path) -> None:
    """The descriptor is the same open file: the image is kept without a gap."""

    def work() -> tuple[ContainerSpec, int]:
        return BOX, os.open("lock", os.O_CREAT | os.O_RDWR)

    box, lock = made(tmp_path, work)

    assert BOX == box
    assert os.fstat(lock).st_ino == (tmp_path / "lock").stat().st_ino
    os.close(lock)


def test_the_reason_comes_back(tmp_path: Path) -> None:
    """With code and subcode."""

    def work() -> NoReturn:
        raise ContainerError("no image", code=35, subcode=2)

    with pytest.raises(ContainerError, match="no image") as caught:
        made(tmp_path, work)
    assert (35, 2) == (caught.value.code, caught.value.subcode)


def test_it_does_not_take_the_machines_memory(tmp_path: Path) -> None:
    """Whatever it is that wants so much."""
    with pytest.raises(ContainerError, match="cannot be prepared") as caught:
        made(tmp_path, lambda: (BOX, bytearray(2 * MEMORY_BYTES)[0]))
    assert 21 == caught.value.code


def test_one_that_is_killed_is_the_machines_fault(tmp_path: Path) -> None:
    """Code 1021: the job runs again."""

    def work() -> tuple[ContainerSpec, int]:
        os.kill(os.getpid(), signal.SIGKILL)
        return BOX, -1

    with pytest.raises(ContainerError, match="was killed") as caught:
        made(tmp_path, work)
    assert 1021 == caught.value.code


@alone
def test_nothing_of_it_is_left_or_counted(tmp_path: Path) -> None:
    """
    Neither the process nor, among what our children used, its time; children of other tests may come and go.
    """

    def work() -> tuple[ContainerSpec, int]:
        while True:
            pass

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = children_of(os.getpid())
    with building(work, str(tmp_path)):
        assert len(children) + 1 == len(children_of(os.getpid()))
    assert children == children_of(os.getpid())
    assert used == resource.getrusage(resource.RUSAGE_CHILDREN)
    assert signal.SIG_DFL == signal.getsignal(signal.SIGCHLD)


def test_a_name_that_cannot_be_told_is_the_images_fault(tmp_path: Path) -> None:
    """Names on disk are any bytes; what runtimes are told is UTF-8."""
    box = ContainerSpec(program=BOX.program, sandbox="", area="/a", skeleton="/s\udce9", mounts=[])
    with pytest.raises(ContainerError, match="no UTF-8") as caught:
        made(tmp_path, lambda: (box, -1))
    assert 35 == caught.value.code
