"""
runc and crun: an OCI bundle with a configuration of ours, for a startd that is root.

The job stays in the control group of its starter, where it is limited, measured, found and killed like any other job.
Both programs would move it: they are shown the control groups read-only (runc) or not at all (crun), in a mount
namespace of their own.  What they need themselves is not charged to the job: the container is created outside of the
group, its process is moved, and then it is started.

No pid namespace: the first process of one ignores signals that it does not handle, and a job would have to know.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from kettle.execution.containers.policy import ContainerError, machine_error
from kettle.execution.containers.root_directory import Mount
from kettle.execution.containers.runtimes.runtime import MARK, ContainerSpec, StartCheck, awaited
from kettle.execution.processes.launch import launch
from kettle.execution.system.cgroup import Cgroup
from kettle_wire.codes import HoldCode

_READ_ONLY: Final = (
    'while read -r _ place kind _; do case "$kind" in cgroup*) mount -o remount,bind,ro "$place" || exit 1;; esac; '
    'done < /proc/mounts; exec "$@"'
)
_HIDDEN: Final = 'umount -R -l /sys/fs/cgroup && mount -t tmpfs tmpfs /sys/fs/cgroup && exec "$@"'
_VEILS: Final = {"runc": _READ_ONLY, "crun": _HIDDEN}
_OPTIONS: Final = {"runc": ("--rootless=true",), "crun": ("--cgroup-manager=disabled",)}
_SHELL: Final = "/bin/sh"
_UNSHARE: Final = "/usr/bin/unshare"
_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_SAID_BYTES: Final = 2000


def configuration(box: ContainerSpec) -> dict[str, Any]:
    """`config.json` of the bundle."""
    program = box.program
    uid, gid = (
        (program.account.uid, program.account.gid)
        if program.account is not None
        else (os.geteuid(), os.getegid())
    )
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": gid, "umask": 0o022},
            "args": [program.path, *program.arguments],
            "env": [f"{name}={value}" for name, value in program.environment.items()],
            "cwd": program.directory,
            "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")},
            "noNewPrivileges": True,
        },
        "root": {"path": box.skeleton, "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "noexec", "nodev", "mode=1777"]},  # noqa: S108
            *(
                {
                    "destination": mount.destination,
                    "type": "bind",
                    "source": mount.source,
                    "options": _options(mount),
                }
                for mount in box.mounts
            ),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("mount", "ipc", *(["network"] if box.network == "none" else []))],
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    }  # fmt: skip


def _compare(box: ContainerSpec, pid: int) -> None:
    """
    Whether the container of a process has what was looked at: its runtime follows paths with rights that the job has not.

    Raises:
        ContainerError: a link or another directory was put there meanwhile.
    """
    for mount in box.mounts:
        if mount.identity is not None:
            about = os.stat(f"/proc/{pid}/root{mount.destination}", follow_symlinks=False)  # noqa: PTH116 - short
            if (about.st_dev, about.st_ino) != mount.identity:
                raise ContainerError(
                    f"{mount.source} of the image was exchanged while its container was made"
                )


def _options(mount: Mount) -> list[str]:
    """
    The options of a mount apply to everything that is mounted below it (Linux 5.12, runc 1.1, crun 1.8 or later).

    Nothing is below a file, and crun fails with this option there.
    """
    each = "r" if os.path.isdir(mount.source) else ""  # noqa: PTH112
    flags = ["nosuid", *([] if mount.device else ["nodev"]), *([] if mount.writable else ["ro"])]
    return [f"{each}bind", *(f"{each}{flag}" for flag in flags)]


class Oci:
    """`runc` or `crun` at `path`."""

    def __init__(self, name: str, path: str) -> None:
        self._name = name
        self._path = path

    def start(self, box: ContainerSpec, cgroup: Cgroup | None, check: StartCheck) -> int:
        """See `Runtime`."""
        bundle, pid_file = f"{box.area}/bundle", f"{box.area}/pid"
        os.makedirs(bundle, mode=0o700, exist_ok=True)  # noqa: PTH103
        with open(f"{bundle}/config.json", "wb") as file:  # noqa: PTH123
            file.write(msgspec.json.encode(configuration(box)))
        veil = ["-m", "--propagation", "private", "--", _SHELL, "-c", _VEILS[self._name], "sh"]
        create = [*self._command(box), "create", "--bundle", bundle, "--pid-file", pid_file, "job"]
        self._run(box, _UNSHARE, [*veil, *create], check)
        with open(pid_file, encoding="ascii") as file:  # noqa: PTH123
            pid = int(file.read())
        try:
            _compare(box, pid)
            if cgroup is not None:
                cgroup.take(pid)
            check(pid)
            self._run(box, _UNSHARE, [*veil, *self._command(box), "start", "job"], check)
        except BaseException:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            raise
        return pid

    def end(self) -> None:
        """See `Runtime`: all of it is in the area."""

    def _command(self, box: ContainerSpec) -> list[str]:
        log = ["--log", f"{box.area}/log"]
        return [self._path, *_OPTIONS[self._name], "--root", f"{box.area}/state", *log]

    def _run(self, box: ContainerSpec, path: str, arguments: Sequence[str], check: StartCheck) -> None:
        """Run it to its end; the job's streams go through it to the container."""
        program = msgspec.structs.replace(
            box.program,
            path=path,
            arguments=arguments,
            environment={"PATH": _PATH, MARK: box.sandbox},
            directory="/",
            lowers_itself=True,
        )
        pid = launch(program)
        handle = os.pidfd_open(pid)
        try:
            if not awaited(handle, check):
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        except BaseException:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            raise
        finally:
            os.close(handle)
        if status:
            raise self._failure(box)

    def _failure(self, box: ContainerSpec) -> ContainerError:
        said = _log(f"{box.area}/log")
        if "exec" in said and any(
            why in said for why in ("no such file", "permission denied", "format error")
        ):
            return ContainerError(
                f"cannot execute {box.program.path} in the container: {said}",
                code=HoldCode.FailedToCreateProcess,
            )
        return machine_error(f"{self._name} could not start the container: {said or 'it did not say why'}")


def _log(path: str) -> str:
    """The last thing that it complained about."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            lines = file.read()[-_SAID_BYTES:].decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    text = lines[-1] if lines else ""
    _, found, message = text.partition('msg="')
    return message.rstrip('"').replace('\\"', '"') if found else text
