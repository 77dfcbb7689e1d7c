"""
Programs of the machine's owner that are run around a job: as the job's account, in its sandbox, with its ad as input.

Each ends with all that it has begun, and after its time in any case.
"""

import importlib
import os
import select
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal

import msgspec

from kettle.execution.attempts.job_spec import JobHooks, JobSpec
from kettle.execution.job_environment.job_ad import JobAd, long_form
from kettle.execution.job_environment.variables import job_environment
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import become_subreaper, boottime
from kettle.jobs import in_use
from kettle_services.starter.execution.helper_process import HelperProcess
from kettle_services.starter.execution.process_tree import ProcessTree, empty_process_tree
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending, Usage
from kettle_wire.codes import HoldCode, VacateCode

Hook = Literal["prepare_job_before_transfer", "prepare_job", "update_job_info", "job_exit"]

_READS: Final = 64
"""Of one stream, before somebody else is looked after."""
_SAID: Final = 32 * 1024
"""Bytes of what it says that are understood."""
_REASON: Final = 300


class HookResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a hook ended; `status` is its exit status, or the negative number of the signal that ended it."""

    status: int = 0
    late: bool = False
    changes: Ad = {}
    trouble: str = ""
    """Why it was not run, or what of its words was not understood."""
    error: str = ""
    """What it wrote to standard error, or the beginning of it."""


class HookRun:
    """A hook that runs."""

    def __init__(
        self, hook: Hook, spec: JobSpec, job: JobAd, cgroup: Cgroup | None, more: Ad, *words: str
    ) -> None:
        """`more` goes into the ad that it reads, `words` are its arguments."""
        assert spec.hooks is not None
        self.hook: Final = hook
        sandbox = f"{spec.execute}/{spec.id.sandbox}"
        command = [*getattr(spec.hooks, hook), *words]
        given = long_form({**job.whole, **more})
        environment = job_environment(spec, job, sandbox, os.environ)
        self._helper = HelperProcess(
            partial(_run, command, given, environment, spec.hooks.timeout),
            prepare=_load,
            account=spec.account,
            cgroup=cgroup,
            directory=sandbox,
        )
        self.pid: Final = self._helper.pid

    def told(self) -> HookResult:
        """Called after its end."""
        try:
            return msgspec.msgpack.decode(self._helper.outcome(), type=HookResult)
        except msgspec.MsgspecError:
            return HookResult(trouble="the process that runs it died")

    def close(self) -> None:
        """Stop reading its output."""
        self._helper.close()


class Updates:
    """The hook that gets periodic updates about a job; one run at a time, and nothing waits for it."""

    def __init__(self, spec: JobSpec, job: JobAd, cgroup: Cgroup | None) -> None:
        self._spec = spec
        self._job = job
        self._cgroup = cgroup
        self._running: HookRun | None = None

    def tell(self, tree: ProcessTree, usage: Usage) -> None:
        """Run it, if the last one has ended and there can be a process for it."""
        if not has(self._spec.hooks, "update_job_info"):
            return
        if self._running is not None:
            if tree.visitors.get(self._running.pid) is None:
                return
            tree.visitors.pop(self._running.pid)
            self.close()
        try:
            self._running = HookRun("update_job_info", self._spec, self._job, self._cgroup, in_use(usage))
        except OSError as error:
            sys.excepthook(type(error), error, error.__traceback__)
        else:
            tree.visitors[self._running.pid] = None

    def close(self) -> None:
        """Stop reading the output of the last run; called after its end."""
        if self._running is not None:
            self._running.close()
            self._running = None


def has(hooks: JobHooks | None, hook: Hook) -> bool:
    """Whether it is to be run."""
    return hooks is not None and bool(getattr(hooks, hook))


def verdict(run: HookRun, told: HookResult) -> Ending | None:
    """
    What becomes of a job after a hook that prepares it; None: it goes on.

    What the hook decides holds the job; what is wrong with the hook is the machine's fault, and the job runs elsewhere.
    """
    name = f"the hook {run.hook.upper()} of this machine"
    error = f": {told.error}" if told.error else ""
    if told.late:
        return Ending(code=VacateCode.StarterError, reason=f"{name} did not end in its time, and was killed")
    if told.trouble:
        return Ending(code=VacateCode.StarterError, reason=f"{name} failed: {told.trouble}{error}")
    if told.status:
        how = f"exit status {told.status}" if told.status > 0 else f"signal {-told.status}"
        reason = f"{name} does not let the job run ({how}){error}"
        return Ending(code=HoldCode.HookPrepareJobFailure, subcode=told.status, reason=reason)
    return None


def exit_attributes(code: int, usage: Usage) -> Ad:
    """
    What the hook of a job's end reads beside the job's ad; a negative `code` is that of the signal which ended it.
    """
    how: Ad = {"ExitBySignal": code < 0, "ExitSignal" if code < 0 else "ExitCode": abs(code)}
    return how | in_use(usage)


def word(ending: Ending | None) -> str:
    """The argument for the hook of a job's end."""
    if ending is None:
        return "exit"
    if ending.holds:
        return "hold"
    return "remove" if ending.code == VacateCode.JobRemoved else "evict"


# -- in the helper process --------------------------------------------------------------------------------------------


def _load() -> None:
    for module in ("kettle.classad", "subprocess"):  # as somebody else we could not read them any more
        importlib.import_module(module)
    become_subreaper()


def _run(
    command: list[str],
    given: str,
    environment: Mapping[str, str],
    timeout: float,
    become: Callable[[], None],
) -> bytes:
    become()
    told = run(command, given, environment, timeout)
    empty_process_tree(None).kill_all()  # what it has begun and left: we are the subreaper of it
    return msgspec.msgpack.encode(told)


def run(command: list[str], given: str, environment: Mapping[str, str], timeout: float) -> HookResult:
    """Run a program with `given` as its input, `timeout` seconds at most."""
    import subprocess

    stdin = os.memfd_create("ad")
    with os.fdopen(stdin, "wb") as file:
        file.write(given.encode(errors="replace"))
        file.seek(0)
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            return HookResult(trouble=f"{command[0]} cannot be run: {error.strerror}")
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        said, late = _heard(process.pid, process.stdout.fileno(), process.stderr.fileno(), timeout)
        if late:
            process.kill()
    status = process.returncode
    out, err = said
    why = " ".join(err.decode(errors="replace").split())[:_REASON]
    if late or status:
        return HookResult(status=status, late=late, error=why)
    if len(out) > _SAID:
        return HookResult(trouble=f"it says more than {_SAID} bytes", error=why)
    return _understood(bytes(out), why)


def _heard(pid: int, out: int, err: int, timeout: float) -> tuple[tuple[bytearray, bytearray], bool]:
    """What a process says until it ends, or the beginning of it; whether its time was over before."""
    said = {out: bytearray(), err: bytearray()}
    until = boottime() + timeout
    handle = os.pidfd_open(pid)
    poll = select.poll()
    for fd in (handle, out, err):
        poll.register(fd, select.POLLIN)
    for fd in said:
        os.set_blocking(fd, False)
    late = False
    while not late:
        ready = {fd for fd, _ in poll.poll(max(0.0, until - boottime()) * 1000)}
        for fd, heard in said.items():
            if fd in ready and not _read(fd, heard):
                poll.unregister(fd)
        if handle in ready:
            break
        late = boottime() >= until
    for fd, heard in said.items():
        _read(fd, heard)
    os.close(handle)
    return (said[out], said[err]), late


def _read(fd: int, heard: bytearray) -> bool:
    """Read what there is, and keep no more than is understood; whether there may be more."""
    for _ in range(_READS):
        try:
            data = os.read(fd, _SAID)
        except BlockingIOError:
            return True
        if not data:
            return False
        heard += data[: max(0, _SAID + 1 - len(heard))]
    return True


def _understood(said: bytes, error: str) -> HookResult:
    from kettle.classad import ClassAdError, read_long

    try:
        return HookResult(changes=read_long(said.decode()).to_wire(), error=error)
    except (ClassAdError, UnicodeDecodeError) as reason:
        return HookResult(trouble=f"what it says is no ad: {reason}", error=error)
