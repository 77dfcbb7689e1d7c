"""What a machine proves of itself before the pool hears of it: each check is real, as a job would find it."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kettle.auth.private_files import write_private
from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.probe import PROGRAMS, ProbeOrder, ProbeResult, longest
from kettle.execution.processes.isolation import in_thread
from kettle.execution.processes.namespaces import why_no_mounts
from kettle.execution.system.cgroup_layout import probe_cgroups, remove_layout
from kettle.execution.system.gpus import find_gpus
from kettle.execution.system.probe_programs import ask
from kettle.pool.home import Home
from kettle.pool.personal_settings import slot_uid_base
from kettle_services.worker.services import own_environment
from kettle_wire.examination import Examination

_log: Final = logging.getLogger(__name__)
_MB: Final = 1 << 20
_TOLD: Final = 500
"""So many characters of what a program of the site said last are told."""


class Check(msgspec.Struct, frozen=True):
    """One of them; `work` says why the machine is not fit, in one sentence; empty: it is."""

    name: str
    work: Callable[[], str]


def checks(wanted: Examination, home: Home, skew: Callable[[], float | None]) -> Sequence[Check]:
    """What has to be proven here; `skew`: how wrong the clock is, as far as the pool has said."""
    found = [Check("free disk", lambda: _disk(wanted, home)), Check("clock", lambda: _clock(wanted, skew()))]
    if wanted.isolation:
        found.append(Check("control groups and namespaces", lambda: _isolation(home)))
    if wanted.containers:
        found.append(Check("a container", lambda: _container(home)))
    if wanted.gpus:
        found.append(Check("GPUs", lambda: _gpus(wanted)))
    if wanted.script:
        found.append(Check("the program of the site", lambda: _script(wanted, home)))
    return found


def _disk(wanted: Examination, home: Home) -> str:
    free = shutil.disk_usage(home.execute).free // _MB
    return (
        "" if free >= wanted.disk else f"{free} MB are free where jobs work, and {wanted.disk} MB have to be"
    )


def _clock(wanted: Examination, skew: float | None) -> str:
    if skew is None or abs(skew) <= wanted.skew:
        return ""
    return f"the clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the pool's, {wanted.skew:g} s at most"


def _isolation(home: Home) -> str:
    layout = probe_cgroups(f"kettle-examination-{home.pool_id()}")
    if layout is None:
        return "no control group can be made"
    remove_layout(layout)
    if layout.kind == "tracking":
        return "control groups do not limit memory"
    if os.geteuid() == 0 and (why := in_thread(why_no_mounts)):
        return f"jobs cannot have directories of their own: {why}"
    return ""


def _container(home: Home) -> str:
    """One has to run, in the way in which jobs' will."""
    account = None
    if os.geteuid() == 0:
        number = slot_uid_base(home.pool_id())
        account = Account(number, number)
    order = ProbeOrder(names=list(PROGRAMS), place=str(home.execute), account=account)
    command = [sys.executable, "-P", "-m", "kettle.execution.containers.probe"]
    try:
        said = ask(command, told=msgspec.json.encode(order), patience_s=longest(order))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no container could be tried: {error}"
    tried = [msgspec.json.decode(line, type=ProbeResult) for line in said.out.splitlines()]
    if any(not each.why for each in tried):
        return ""
    return f"no container runs: {'; '.join(f'{each.name}: {each.why}' for each in tried)}"


def _gpus(wanted: Examination) -> str:
    found = len(find_gpus() or {})
    return "" if found >= wanted.gpus else f"{found} GPU(s) were found, and {wanted.gpus} have to be"


def _script(wanted: Examination, home: Home) -> str:
    """It sees nothing of how the machine came here; what it says last is why it fails."""
    program = home.path / "examination"
    try:
        write_private(program, wanted.script).chmod(0o700)
        said = ask(
            [str(program)],
            patience_s=wanted.script_timeout,
            environ=own_environment(os.environ),
            directory=home.execute,
        )
    except subprocess.TimeoutExpired:
        return f"the program of the site did not end within {wanted.script_timeout:g} s"
    except OSError as error:
        return f"the program of the site cannot be run: {error.strerror}"
    finally:
        program.unlink(missing_ok=True)
    if not said.status:
        return ""
    words = " ".join((said.err or said.out).split())[-_TOLD:]
    return f"the program of the site ended with status {said.status}: {words or 'it said nothing'}"
