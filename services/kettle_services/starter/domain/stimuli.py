"""
What happens to an attempt: orders, deadlines, and the ends of what its starter does.

Each is a plain value that can be recorded and replayed.  Renewals of the lease, requests of people and answers of the submit
side change nothing here; a deadline that has passed comes as the stimulus that it means.
"""

import msgspec

from kettle_wire.attempts import Ending

# -- from outside: in any phase, at any time ---------------------------------------------------------------------------


class EndRequested(msgspec.Struct, frozen=True, tag="end_requested"):
    """
    The startd, the lease, a limit of the job or what it uses says that the attempt has to end; `hard`: without time.
    """

    ending: Ending
    hard: bool = False


class SuspendRequested(msgspec.Struct, frozen=True, tag="suspend_requested"):
    """All processes of the job are to be stopped."""


class ContinueRequested(msgspec.Struct, frozen=True, tag="continue_requested"):
    """They are to go on."""


class KillTimeOver(msgspec.Struct, frozen=True, tag="kill_time_over"):
    """What was asked to end has had its time for that."""


class LifelineLost(msgspec.Struct, frozen=True, tag="lifeline_lost"):
    """The program that started the master has ended, and wants nothing to outlive it."""


class StarterStumbled(msgspec.Struct, frozen=True, tag="starter_stumbled"):
    """Something that is not foreseen has failed; the attempt ends with that, if nothing else has ended it."""

    ending: Ending


# -- of what the starter does: only where it does that -----------------------------------------------------------------


class HelperStarted(msgspec.Struct, frozen=True, tag="helper_started"):
    """A hook, a plugin or another program that works for the job runs."""


class HelperEnded(msgspec.Struct, frozen=True, tag="helper_ended"):
    """It has ended."""


class StartDeferred(msgspec.Struct, frozen=True, tag="start_deferred"):
    """The job is prepared before the time at which it wants to be started."""


class StartTimeArrived(msgspec.Struct, frozen=True, tag="start_time_arrived"):
    """That time has come."""


class ProgramStarted(msgspec.Struct, frozen=True, tag="program_started"):
    """The program runs, or the first one of several tasks does."""


class ProgramStartedAgain(msgspec.Struct, frozen=True, tag="program_started_again"):
    """It runs again, after a checkpoint."""


class TaskStarted(msgspec.Struct, frozen=True, tag="task_started"):
    """The next one of several tasks runs, or the same once more."""


class ProgramEnded(msgspec.Struct, frozen=True, tag="program_ended"):
    """
    The main process has ended and was reaped; `checkpoint`: with the exit code that says that there is one.
    """

    checkpoint: bool = False


class TaskEnded(msgspec.Struct, frozen=True, tag="task_ended"):
    """A task of several has ended."""


class TasksFinished(msgspec.Struct, frozen=True, tag="tasks_finished"):
    """No other task follows."""


class CheckpointFinished(msgspec.Struct, frozen=True, tag="checkpoint_finished"):
    """The files of the checkpoint are saved, and the pause before the next start is over."""


class AttemptFailed(msgspec.Struct, frozen=True, tag="attempt_failed"):
    """
    What is foreseen has failed: an input that cannot be had, a program that cannot be started, a job out of memory.
    """

    ending: Ending


class WorkAbandoned(msgspec.Struct, frozen=True, tag="work_abandoned"):
    """What was going on when the attempt was to end is not going on any more."""


class ResultsCollected(msgspec.Struct, frozen=True, tag="results_collected"):
    """It is decided what the final report says."""


class ReportStored(msgspec.Struct, frozen=True, tag="report_stored"):
    """
    The final report is on disk; `traces`: the job has left some in this process, which no other job is to meet.
    """

    traces: bool = False


Outside = EndRequested | SuspendRequested | ContinueRequested | KillTimeOver | LifelineLost | StarterStumbled
Stimulus = (
    Outside
    | HelperStarted
    | HelperEnded
    | StartDeferred
    | StartTimeArrived
    | ProgramStarted
    | ProgramStartedAgain
    | TaskStarted
    | ProgramEnded
    | TaskEnded
    | TasksFinished
    | CheckpointFinished
    | AttemptFailed
    | WorkAbandoned
    | ResultsCollected
    | ReportStored
)
