"""
Named places at which a test makes a process die or stop.

    fault_point("append.committed")

does nothing, unless the process was started with `KETTLE_FAULT_POINTS`, for example `append.committed=kill@3`: then the
process gets SIGKILL when it passes that place for the third time. `stop` is SIGSTOP, after which the process goes on
when it gets SIGCONT. What a kill at an arbitrary moment shows once in a thousand runs, these show every time.

With `KETTLE_FAULT_ONCE`, a directory, each fault happens once for that directory and leaves a file with the name of its
place there: a restarted process is not affected, and the test sees that the place was reached.

A name that is not in `POINTS` is refused, at the place and in the variable alike: a fault that is never reached would
be a test that cannot fail.
"""

import os
import signal
from collections.abc import Mapping
from typing import Final

VARIABLE: Final = "KETTLE_FAULT_POINTS"
ONCE: Final = "KETTLE_FAULT_ONCE"

POINTS: Final[Mapping[str, str]] = {
    "append.before": "a batch is closed, nothing of it was sent to the database",
    "append.committed": "a frame is committed, nobody was told",
    "append.released": "a frame is committed and its answers are released",
    "relay.before": "committed frames are about to be published",
    "relay.published": "frames are on the bus, the owner has not noted it",
    "projection.before": "the rows of a batch are written, their transaction is open",
    "projection.committed": "rows and cursor are committed, nobody who waits was told",
    "working_set.before": "the working set is about to be saved",
    "working_set.saved": "the working set is saved, the owner has not noted it",
    "takeover.elected": "the lease is held, the shard is not owned yet",
    "takeover.fenced": "the epoch is raised, nothing is restored yet",
    "takeover.restored": "the state is restored, nothing is answered yet",
    "takeover.serving": "the new owner answers",
    "rebuild.filled": "the new tables of a projection are full, they are not in use yet",
    "rebuild.swapped": "the new tables are in use, the old ones are still there",
    "gateway.sent": "events were sent to be stored together, whether they are is not known",
    "gateway.stored": "events are stored, the frames they came from are not acknowledged",
    "event_log.before": "what a frame adds to the event log is known, nothing of it is in the file",
    "event_log.written": "it is in the file, the cursor is where it was",
    "event_log.saved": "the cursor is behind it",
    "event_log.full": "a full file has its last heading, and its name still",
    "event_log.shifted": "one of those before it has the next name, the others have not",
    "event_log.aside": "it has its other name, and there is no new one",
    "event_log.begun": "the new file has its heading and nothing else",
    "archive.written": "a piece of the log is in its archive, the database still has it",
    "lease.submitting": "it is recorded that a machine is asked for, its provisioner was not",
    "lease.answered": "a provisioner has answered, nothing of it is recorded",
    "lease.removing": "it is recorded that a machine is to be removed, its provisioner was not asked",
    "host.fencing": "a scaler has recorded that a machine is to sleep, and it was not asked to take no more jobs",
    "host.switching": "a scaler has recorded that a machine is put to sleep or woken, and no provisioner was asked",
    "host.switched": "a scaler has the answer of a provisioner about a machine, and has not used it",
    "machine.switched": "a provisioner is to put a machine to sleep or wake it, and has not asked its provider",
    "machine.was_switched": "a provisioner has the answer of a provider about a machine, and has not passed it on",
    "machine.ordered": "a provisioner has an order and a join token, its provider was not asked",
    "machine.made": "there is a machine, and only its provider knows",
    "machine.removed": "a provider was asked to remove a machine, its provisioner has not said so",
    "ce.decided": "it is recorded which routes jobs get, their schedd was not told",
    "batch.brought": "a job for a batch system has its files, nothing of it is recorded",
    "batch.submitting": "it is recorded that a batch system is asked to take a job, it was not",
    "batch.taken": "a batch system has taken a job, nothing of it is recorded",
    "batch.found": "a job in doubt was found at a batch system, nothing of it is recorded",
    "batch.answered": "a batch system has said that a job is over, nothing of it is recorded",
    "batch.ordering": "it is recorded that a job at a batch system is to end, the batch system was not told",
    "batch.ordered": "a batch system was told to end a job, nothing of it is recorded",
    "batch.ended": "it is recorded that a job at a batch system is over, nobody was told",
    "archive.dropped": "a piece of the log is in its archive alone",
}
"""Every place, and how things stand there."""

_ACTIONS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def parse(text: str) -> dict[str, tuple[signal.Signals, int]]:
    """
    What `NAME=kill@N,NAME=stop` asks for, by place; `@N` is the first time if it is left out.

    Raises:
        ValueError: there is no such place or action.
    """
    wanted: dict[str, tuple[signal.Signals, int]] = {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = one.partition("=")
        action, _, count = rest.partition("@")
        if name not in POINTS or action not in _ACTIONS or not (count or "1").isdecimal():
            raise ValueError(f"{VARIABLE}: '{one}' is not NAME=kill|stop[@N] with one of {', '.join(POINTS)}")
        wanted[name] = (_ACTIONS[action], int(count or "1"))
    return wanted


_wanted: Final = parse(os.environ.get(VARIABLE, ""))
_passed: Final[dict[str, int]] = {}


def arm(environ: Mapping[str, str]) -> None:
    """
    Take the faults of a process from its own variables, where it was forked from one that has others.

    Raises:
        ValueError: there is no such place or action.
    """
    wanted = parse(environ.get(VARIABLE, ""))
    _wanted.clear()
    _wanted.update(wanted)
    _passed.clear()


def fault_point(name: str) -> None:
    """Pass a place; KeyError for one that is not in `POINTS`."""
    if not _wanted:
        return
    POINTS[name]
    _passed[name] = _passed.get(name, 0) + 1
    if name in _wanted and _passed[name] == _wanted[name][1] and _first(name):
        os.kill(os.getpid(), _wanted[name][0])


def _first(name: str) -> bool:
    directory = os.environ.get(ONCE, "")
    if not directory:
        return True
    try:
        os.close(os.open(f"{directory}/{name}", os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    return True
