"""
Which container runtimes work on this machine: each is made to run a program once, in the way in which it will run jobs.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.attempt import Account
from kettle.execution.containers.box import Box
from kettle.execution.containers.cache import ImageCache
from kettle.execution.containers.contained import runtime_of
from kettle.execution.containers.policy import ContainerError, Found
from kettle.execution.containers.roots import Mount, furnish
from kettle.execution.linux import become_subreaper
from kettle.execution.process import LaunchError, Program
from kettle.execution.sandbox import remove_tree

PROGRAMS: Final = {"bubblewrap": "bwrap", "runc": "runc", "crun": "crun"}
_ROOTS_ONLY: Final = frozenset({"runc", "crun"})
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SYSTEM: Final = ("bin", "lib", "lib32", "lib64", "libx32", "usr")
_TRUE: Final = "/bin/true"
_PREFIX: Final = "probe-"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """
    What to try, and where.
    """

    names: list[str]
    place: str
    """A directory that `account` can pass through."""
    account: Account | None
    images: str
    limit: int


class Probed(msgspec.Struct, frozen=True):
    """
    What works, in the order in which it was asked for, and why the rest does not.
    """

    found: list[Found] = []
    reasons: dict[str, str] = {}


def probe(order: Order) -> Probed:
    """
    Try all of them, for a process with one thread: it becomes the job's account for a moment, and the parent of what runs.

    What a former startd's probe and unfinished images left is removed.
    """
    for left in Path(order.place).glob(_PREFIX + "*"):
        remove_tree(str(left))
    with contextlib.suppress(
        OSError
    ):  # it is only tidying up; a job that needs the place says what is wrong with it
        ImageCache(order.images, order.limit).shrink()
    become_subreaper()
    if os.geteuid() == 0:
        os.setgroups([])
    found: list[Found] = []
    reasons: dict[str, str] = {}
    for name in order.names:
        path = shutil.which(PROGRAMS[name], path=_PATH)
        if path is None:
            reasons[name] = "not installed"
        elif name in _ROOTS_ONLY and os.geteuid() != 0:
            reasons[name] = "it takes a startd that is root to keep jobs in their control groups"
        elif why := _try(Found(name, path), order.place, order.account):
            reasons[name] = why
        else:
            found.append(Found(name, path))
    return Probed(found, reasons)


def _try(found: Found, place: str, account: Account | None) -> str:
    area = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
    try:
        os.chmod(area, 0o711)  # noqa: PTH101, S103 - the job's account must get there
        image, skeleton = f"{area}/image", f"{area}/root"
        for directory in (image, skeleton):
            os.mkdir(directory, 0o755)  # noqa: PTH102
        binds = [_system(name, image) for name in _SYSTEM if os.path.lexists(f"/{name}")]
        mounts = furnish(image, skeleton, [bind for bind in binds if bind is not None])
        program = Program(
            path=_TRUE, arguments=[], environment={"PATH": "/bin"}, directory="/",
            stdin=os.devnull, stdout=os.devnull, stderr=os.devnull, account=account,
        )  # fmt: skip
        box = Box(program=program, area=area, skeleton=skeleton, mounts=mounts)
        _, status = os.waitpid(runtime_of(found).start(box, None, lambda: None), 0)
    except (ContainerError, LaunchError, OSError) as error:
        return str(error)
    finally:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        remove_tree(area)
    return "" if status == 0 else f"{_TRUE} in a container ended with status {status}"


def _system(name: str, image: str) -> Mount | None:
    """
    A directory of the system's programs; where it is a link into another one, the image has that link.
    """
    if os.path.islink(f"/{name}"):  # noqa: PTH114
        os.symlink(os.readlink(f"/{name}"), f"{image}/{name}")  # noqa: PTH115, PTH211
        return None
    return Mount(source=f"/{name}", destination=f"/{name}")


if __name__ == "__main__":
    sys.stdout.buffer.write(
        msgspec.json.encode(probe(msgspec.json.decode(sys.stdin.buffer.read(), type=Order)))
    )
