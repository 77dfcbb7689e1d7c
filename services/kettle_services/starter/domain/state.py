"""Where an attempt stands on its machine: its phase, why it ends, and what was asked of it meanwhile."""

from enum import StrEnum

import msgspec

from kettle_wire.attempts import Ending


class StarterPhase(StrEnum):
    """What a starter does for its job."""

    PREPARING = "preparing"
    """The sandbox is made and filled, hooks and plugins work, and the program is started: the first time, after a
    checkpoint, or the next one of several tasks."""
    DEFERRED = "deferred"
    """Everything is prepared, and the job waits for the time at which it wants to be started."""
    RUNNING = "running"
    """The program runs."""
    SUSPENDED = "suspended"
    """The program was started and all its processes are stopped."""
    CHECKPOINTING = "checkpointing"
    """The program has ended with a checkpoint: no process of it is left, its files are saved, and it will be started again."""
    ENDING = "ending"
    """The attempt is to end, and what was going on is being ended: the program, or what prepared it or saved its checkpoint."""
    COLLECTING = "collecting"
    """No process of the job is left: the results are looked for and sent to their URLs, and the hook of the job's end runs."""
    REPORTING = "reporting"
    """What is reported is decided: the job's remains are removed and the final report is written to disk."""
    OVER = "over"
    """The final report is on disk; the startd is told, and may give this process another job."""


class SuspensionState(StrEnum):
    """What became of the last order to suspend the job, or to have it go on."""

    NONE = "none"
    """Nothing is suspended."""
    WANTED = "wanted"
    """The job is to be suspended as soon as its program is started: what prepares it goes on."""
    REPORTED = "reported"
    """Wanted, and reported before: the program has ended with a checkpoint, or the next task is about to be started."""
    IN_FORCE = "in force"
    """All processes are stopped."""


class StarterState(msgspec.Struct, frozen=True):
    """The state of one attempt; all that a starter decides by."""

    phase: StarterPhase = StarterPhase.PREPARING
    suspension: SuspensionState = SuspensionState.NONE
    ending: Ending | None = None
    """Why the attempt ends without its program having run to its end: the first reason that there was."""
    helper: bool = False
    """A hook, a plugin or another program that works for the job runs: it is given time to end, as the job would be."""
    reusable: bool = True
    """This process can run another job, as far as it is known."""

    @property
    def suspends(self) -> bool:
        """Whether the job is suspended, or will be as soon as it runs."""
        return self.suspension is not SuspensionState.NONE
