"""
Files of the tasks, in processes that have become the job's account: what was fetched is checked and unpacked, what is sent is
found and packed.
"""

import glob
import hashlib
import importlib
import os
import posixpath
import stat
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.system.cgroup import Cgroup
from kettle_services.starter.execution.helper_process import HelperProcess
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_wire.tasks import Artifact, Outcome, Output, Step

_KIB: Final = 1024


class Handled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How it went with a file."""

    name: str = ""
    """Of what is sent, in the sandbox."""
    bytes: int = 0
    reason: str = ""
    """Why it failed; empty: it did not."""


def handled(step: Step, how: Handled) -> Step:
    """The step of a file, with how it went."""
    outcome: Outcome = "failed" if how.reason else step.outcome
    return msgspec.structs.replace(
        step, outcome=outcome, reason=how.reason, bytes=how.bytes, ended=time.time()
    )


class TaskFiles:
    """The files of one job; `watch` returns when a process has ended."""

    def __init__(
        self,
        spec: JobSpec,
        cgroup: Cgroup | None,
        sandbox: str,
        watch: Callable[[ProcessTree], object],
    ) -> None:
        self._spec = spec
        self._cgroup = cgroup
        self._sandbox = sandbox
        self._watch = watch

    def image(self, name: str, sha256: str) -> Handled:
        """Compare an image that was fetched with its digest, if it is to have one."""
        return self._done(partial(_compared, f"{self._sandbox}/{name}", sha256))

    def artifact(self, name: str, artifact: Artifact) -> Handled:
        """Unpack what was fetched if it is an archive, or let it be executed."""
        room = self._spec.disk * _KIB
        return self._done(partial(_prepared, self._sandbox, name, artifact.executable, room))

    def output(self, output: Output) -> Handled:
        """Find a result, and pack it if it is a directory."""
        return self._done(partial(_chosen, self._sandbox, output))

    def _done(self, work: Callable[[], Handled]) -> Handled:
        def as_job(become: Callable[[], None]) -> bytes:
            become()
            return msgspec.msgpack.encode(work())

        helper = HelperProcess(
            as_job,
            prepare=partial(importlib.import_module, "kettle.tasks.unpacking"),
            account=self._spec.account,
            cgroup=self._cgroup,
            directory=self._sandbox,
        )
        tree = ProcessTree(helper.pid, self._cgroup)
        try:
            self._watch(tree)
            return msgspec.msgpack.decode(helper.outcome(), type=Handled)
        except msgspec.MsgspecError:
            return Handled(reason="the process that handles it died: perhaps for want of memory")
        finally:
            tree.kill_all()
            helper.close()


def _compared(path: str, sha256: str) -> Handled:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a string
            size = os.fstat(file.fileno()).st_size
            found = hashlib.file_digest(file, "sha256").hexdigest() if sha256 else ""
    except OSError as error:
        return Handled(reason=_why(error))
    if found != sha256:
        return Handled(bytes=size, reason=f"its SHA-256 is {found}, and not {sha256}")
    return Handled(bytes=size)


def _prepared(sandbox: str, name: str, executable: bool, room: int) -> Handled:  # noqa: FBT001 - of a partial
    from kettle.tasks.unpacking import UnpackingError, is_packed, unpack

    path = f"{sandbox}/{name}"
    try:
        size = os.stat(path).st_size  # noqa: PTH116 - a string
        if is_packed(name):
            unpack(path, sandbox, room)
        elif executable:
            os.chmod(path, 0o755)  # noqa: PTH101, S103 - a string; nobody else gets into the sandbox
    except UnpackingError as error:
        return Handled(reason=str(error))
    except OSError as error:
        return Handled(reason=_why(error))
    return Handled(bytes=size)


def _chosen(sandbox: str, output: Output) -> Handled:
    from kettle.tasks.unpacking import pack

    inside = os.path.realpath(sandbox)
    fit = sorted(glob.glob(output.name, root_dir=sandbox))  # noqa: PTH207 - strings
    if len(fit) != 1:
        some = f"{len(fit)} names fit, and one is to be sent" if fit else "there is none"
        return Handled(name=output.name, reason=some)
    if fit[0] != fit[0].encode(errors="replace").decode():
        return Handled(name=output.name, reason="the name that fits is not UTF-8")
    path = f"{sandbox}/{fit[0]}"
    if not f"{os.path.realpath(path)}/".startswith(f"{inside}/"):
        return Handled(name=fit[0], reason="it leads out of the sandbox")
    try:
        about = os.stat(path)  # noqa: PTH116 - a string
        if output.directory:
            name = f"{posixpath.basename(fit[0].rstrip('/'))}.tgz"
            if not stat.S_ISDIR(about.st_mode):
                return Handled(name=fit[0], reason="it is no directory")
            return Handled(name=name, bytes=pack(path, f"{sandbox}/{name}"))
    except OSError as error:
        return Handled(name=fit[0], reason=_why(error))
    if not stat.S_ISREG(about.st_mode):
        return Handled(name=fit[0], reason="it is no file")
    return Handled(name=fit[0], bytes=about.st_size)


def _why(error: OSError) -> str:
    return error.strerror or str(error)
