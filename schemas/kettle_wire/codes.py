"""
Every code that HTCondor's attributes and our refusals have: one enum each, and no bare number anywhere else.

Fields of events and messages keep the types `int` and `str`, so that a code that a later version adds can be read.
In an ad stands the plain number: whatever puts a code into one says `int(...)`.
Imports nothing but `enum`, since every short command reads it.
"""

from enum import IntEnum, StrEnum


class JobStatus(IntEnum):
    """JobStatus of a job's ad."""

    IDLE = 1
    """It waits for a machine."""
    RUNNING = 2
    """An attempt of it is under way."""
    REMOVED = 3
    """Somebody or its policy removed it."""
    COMPLETED = 4
    """It ran to its end."""
    HELD = 5
    """It waits for somebody to release it."""
    TRANSFERRING_OUTPUT = 6
    """Its results are on their way; never set any more."""
    SUSPENDED = 7
    """Its processes are stopped, and it keeps its machine."""
    FAILED = 8
    """Reserved."""
    BLOCKED = 9
    """It waits for an input that it shares with others; never set here."""
    PREPARING = 10
    """What must be done before it may become idle is under way; never set here."""


class Universe(IntEnum):
    """JobUniverse of a job's ad: in which way it is run."""

    STANDARD = 1
    """Relinked to be checkpointed; obsolete."""
    VANILLA = 5
    """On any machine; containers too."""
    SCHEDULER = 7
    """On the schedd's machine, beside the queue."""
    MPI = 8
    """Several nodes by MPI; obsolete."""
    GRID = 9
    """Through another batch system."""
    JAVA = 10
    """A program for the Java virtual machine."""
    PARALLEL = 11
    """On several machines at once."""
    LOCAL = 12
    """On the schedd's machine, with a starter."""
    VM = 13
    """A virtual machine."""


class HoldCode(IntEnum):
    """HoldReasonCode: why a job is held; a member's name is the one in NumHoldsByReason."""

    Unspecified = 0
    """No reason was given."""
    UserRequest = 1
    """Somebody put the job on hold; the subcode is his."""
    GlobusGramError = 2
    """The grid middleware reported an error; the subcode is its code."""
    JobPolicy = 3
    """The job's periodic_hold or on_exit_hold was true; the subcode is the job's."""
    CorruptedCredential = 4
    """The job's credential cannot be used."""
    JobPolicyUndefined = 5
    """An expression of the job that had to have a value has none."""
    FailedToCreateProcess = 6
    """The job's program cannot be started; the subcode is the errno."""
    UnableToOpenOutput = 7
    """The file for the job's standard output cannot be opened; the subcode is the errno."""
    UnableToOpenInput = 8
    """The file for the job's standard input cannot be opened; the subcode is the errno."""
    UnableToOpenOutputStream = 9
    """The stream for the job's standard output cannot be opened; the subcode is the errno."""
    UnableToOpenInputStream = 10
    """The stream for the job's standard input cannot be opened; the subcode is the errno."""
    InvalidTransferAck = 11
    """A file transfer was acknowledged in a way that makes no sense."""
    TransferOutputError = 12
    """
    Results cannot be brought back to the access point; the subcode is an errno, or a plugin's exit status times 256.
    """
    TransferInputError = 13
    """
    Inputs cannot be brought to the machine; the subcode is an errno, or a plugin's exit status times 256.
    """
    IwdError = 14
    """The job's initial working directory cannot be used; the subcode is the errno."""
    SubmittedOnHold = 15
    """It was submitted on hold."""
    SpoolingInput = 16
    """Its input files are still on their way to the access point."""
    JobShadowMismatch = 17
    """The shadow does not fit the job."""
    InvalidTransferGoAhead = 18
    """A go-ahead for a file transfer makes no sense."""
    HookPrepareJobFailure = 19
    """The prepare hook of the machine failed; the subcode is its exit status, or the negative signal."""
    MissedDeferredExecutionTime = 20
    """The moment for which the job's start had been deferred is over."""
    StartdHeldJob = 21
    """The machine's WANT_HOLD was true; the subcode is WANT_HOLD_SUBCODE."""
    UnableToInitUserLog = 22
    """The job event log cannot be written; the subcode is the errno."""
    FailedToAccessUserAccount = 23
    """The account of the job's owner cannot be used."""
    NoCompatibleShadow = 24
    """No shadow can run the job."""
    InvalidCronSettings = 25
    """The job's cron settings make no sense."""
    SystemPolicy = 26
    """SYSTEM_PERIODIC_HOLD was true; the subcode is SYSTEM_PERIODIC_HOLD_SUBCODE."""
    SystemPolicyUndefined = 27
    """An expression of the system's policy that had to have a value has none."""
    MaxTransferInputSizeExceeded = 32
    """The inputs are larger than max_transfer_input_mb."""
    MaxTransferOutputSizeExceeded = 33
    """The results are larger than max_transfer_output_mb."""
    JobOutOfResources = 34
    """The job used more than it had requested; the subcode says of what."""
    InvalidDockerImage = 35
    """The container image, of whichever kind, cannot be used."""
    FailedToCheckpoint = 36
    """The job's checkpoint failed."""
    PreScriptFailed = 43
    """The job's pre script failed."""
    PostScriptFailed = 44
    """The job's post script failed."""
    SingularityTestFailed = 45
    """The test of the container runtime failed."""
    JobDurationExceeded = 46
    """The attempt took longer than allowed_job_duration."""
    JobExecuteExceeded = 47
    """The job ran longer than allowed_execute_duration."""
    HookShadowPrepareJobFailure = 48
    """The prepare hook of the shadow failed."""
    CannotSwitchPrimaryGroup = 49
    """The job cannot be given the primary group that it asks for."""


class HoldSubcode(IntEnum):
    """HoldReasonSubCodes that have a fixed meaning; most of the others are errnos."""

    PluginNotFound = -1001
    """No plugin for such a URL is there: the job runs again."""
    PluginNotOperational = -1002
    """The plugin failed its test: the job runs again."""
    PluginExecFailed = -1003
    """The plugin cannot be started: the job runs again."""
    PluginNoResult = -1004
    """The plugin ended without reporting on a file: the job runs again."""
    Memory = 102
    """Of JobOutOfResources: memory."""
    Disk = 104
    """Of JobOutOfResources: disk."""


class VacateCode(IntEnum):
    """
    VacateReasonCode: why an attempt ended before its job did; a member's name is the one in NumVacatesByReason.
    """

    JobPolicyVacate = 1000
    """The job's periodic_vacate was true."""
    SystemPolicyVacate = 1001
    """SYSTEM_PERIODIC_VACATE was true."""
    ShadowException = 1002
    """The shadow failed."""
    JobNotStarted = 1003
    """The job was not started."""
    UserVacateJob = 1004
    """Somebody wanted the job off its machine."""
    JobShouldRequeue = 1005
    """The job ended, and its on_exit_remove was false: it runs again."""
    FailedToActivateClaim = 1006
    """The machine did not take the job."""
    StarterError = 1007
    """The starter failed."""
    ReconnectFailed = 1008
    """There was no contact with the machine before the job's lease was over."""
    ClaimDeactivated = 1009
    """The attempt is not known on the machine any more."""
    StartdVacateCommand = 1010
    """The machine was told to vacate its jobs."""
    StartdPreemptExpression = 1011
    """The machine's PREEMPT was true."""
    StartdException = 1012
    """The startd failed."""
    StartdShutdown = 1013
    """The startd is being shut down."""
    StartdDraining = 1014
    """The machine is being drained."""
    StartdCoalesce = 1015
    """The slot gave way to a larger one."""
    StartdHibernate = 1016
    """The machine is to sleep."""
    StartdReleaseCommand = 1017
    """The claim was released."""
    StartdPreemptingClaimRank = 1018
    """The machine prefers another job."""
    StartdPreemptingClaimUserPrio = 1019
    """Somebody with a better priority gets the slot."""
    VMError = 1020
    """The virtual machine failed."""
    ContainerError = 1021
    """The container failed by the machine's fault."""
    ScheddVacate = 1022
    """The schedd vacated the job."""
    JobRemoved = 1023
    """The job was removed."""
    ScratchDirError = 1024
    """The job's scratch directory failed."""
    SuccessfulCheckpoint = 1025
    """The job saved its checkpoint and left."""
    ActivationRefusedBadRequest = 1026
    """The request to start the job makes no sense: no machine will like it better."""
    ActivationRefusedNoMatch = 1027
    """The job and the slot do not match any more."""
    ActivationRefusedStillCleaning = 1028
    """The slot is still cleaned of the job before."""
    ActivationRefusedWorklifeExpired = 1029
    """The claim has served its time."""
    ActivationRefusedPreempted = 1030
    """The claim is being preempted."""
    ActivationRefusedBroken = 1031
    """The slot is broken."""
    ActivationRefusedNotIdle = 1032
    """The claim runs something already."""
    ActivationRefusedUnclaimed = 1033
    """The slot is not claimed."""
    ActivationRefusedClaimNotFound = 1034
    """The machine knows no such claim."""
    ActivationRefusedOldClaim = 1035
    """The claim is one from before."""
    ActivationRefusedUnhealthy = 1036
    """The machine is not well."""
    StartdRehoming = 1037
    """The machine moves to another pool."""
    RemovedInBatchSystem = 1901
    """The job was removed in the batch system to which it had been routed; HTCondor has no code for that."""


FIRST_VACATE = min(VacateCode)
"""From here on a code is a VacateReasonCode, below it a HoldReasonCode."""

REFUSED_ACTIVATIONS = frozenset(
    range(VacateCode.ActivationRefusedNoMatch, VacateCode.ActivationRefusedUnhealthy + 1)
)
"""The VacateReasonCodes with which a startd refuses to start a job that another one may start."""


class NodeState(IntEnum):
    """How far a node of a workflow is."""

    WAITING = 0
    """A node that comes before it has not finished."""
    READY = 1
    """It may begin, and waits for its turn."""
    PRE = 2
    """Its PRE script is to be run, runs, or has ended well."""
    QUEUED = 3
    """Its jobs are to be submitted, or are in the queue."""
    RUNNING = 4
    """One of its jobs runs; shown, and never recorded."""
    POST = 5
    """Its POST script is to be run, or runs."""
    DONE = 6
    """It has succeeded."""
    FAILED = 7
    """It has failed, and is not tried again."""
    FUTILE = 8
    """It can never run, because one that comes before it has failed."""
    SKIPPED = 9
    """Its PRE script said that nothing is to be done (PRE_SKIP): those after it go on as if it were done."""


class NodePart(IntEnum):
    """What a job of a node of a workflow does."""

    PRE = 0
    """It runs the PRE script."""
    JOB = 1
    """It is the node's own."""
    POST = 2
    """It runs the POST script."""
    HOLD = 3
    """It runs the HOLD script."""


class NodeJobKind(IntEnum):
    """What has happened to a job of a node of a workflow."""

    SUBMITTED = 0
    """It is in the queue."""
    STARTED = 1
    """It runs."""
    EVICTED = 2
    """It waits for a machine again."""
    HELD = 3
    """It waits for somebody to release it."""
    RELEASED = 4
    """It may run again."""
    COMPLETED = 5
    """It ran to its end."""
    REMOVED = 6
    """It has left the queue, because somebody or a policy removed it."""
    UNMADE = 7
    """Jobs of a cluster that is made little by little will never be made."""
    PROVISIONED = 8
    """Its ad says that what it provides is there (ProvisionerState 2)."""
    ABORTING = 9
    """It was removed, and is being ended where it runs."""


class NodeStatus(IntEnum):
    """NodeStatus in a NODE_STATUS_FILE: the states of a node in the numbers that other programs know."""

    NOT_READY = 0
    """A node that comes before it has not finished."""
    READY = 1
    """It may begin."""
    PRERUN = 2
    """Its PRE script is to be run, or runs."""
    SUBMITTED = 3
    """Its jobs are to be submitted, or are in the queue; of a whole workflow: it runs."""
    POSTRUN = 4
    """Its POST script is to be run, or runs."""
    DONE = 5
    """It has succeeded, or was skipped by its PRE script."""
    ERROR = 6
    """It has failed."""
    FUTILE = 7
    """It can never run."""


class DagStatus(IntEnum):
    """DAG_Status of a workflow."""

    OK = 0
    """Nothing has failed."""
    ERROR = 1
    """Something went wrong with the workflow itself."""
    NODE_FAILED = 2
    """Nodes have failed."""
    ABORTED = 3
    """ABORT-DAG-ON of a node."""
    REMOVED = 4
    """Its DAG job was removed."""
    CYCLE = 5
    """Nodes wait for each other."""
    HALTED = 6
    """Somebody has stopped it, and all that ran has ended."""


class NodeValue(IntEnum):
    """Node values that are no exit code: RETURN of a POST script."""

    SUBMIT_FAILED = -1001
    """Its jobs could not be submitted."""
    REMOVED = -1002
    """A job of it was removed."""
    PRE_FAILED = -1004
    """Its PRE script has failed."""


class RefusalCode(StrEnum):
    """
    The stable word with which a service refuses a command, for programs; a sentence for people comes with it.
    """

    BAD_CONSTRAINT = "bad_constraint"
    """The constraint of a query cannot be read."""
    BEHIND = "behind"
    """The answer would not have what the caller knows to be recorded; ask again."""
    BUSY = "busy"
    """There is too much to do at the moment; ask again later."""
    CE_DRAINING = "ce.draining"
    """The compute entrypoint takes no jobs: an administrator drains it."""
    CE_VO_FULL = "ce.vo_full"
    """The VO has as many jobs as it may."""
    CE_VO_SPOOL_FULL = "ce.vo_spool_full"
    """The files of the VO's jobs take more of the spool than they may."""
    CE_VO_NOT_ALLOWED = "ce.vo_not_allowed"
    """The compute entrypoint takes no jobs of the caller's VO, or nobody has said of which it is."""
    CHANGED = "changed"
    """What was sent is not what had been announced."""
    DENIED = "denied"
    """The caller may not do that."""
    ELSEWHERE = "elsewhere"
    """The job runs where this cannot be done."""
    FOREIGN_NOTE = "foreign_note"
    """A place in a stream is not one of this stream."""
    GONE = "gone"
    """What was asked for was here, and is not kept any more."""
    LIMIT = "limit"
    """There would be more than a limit allows, which the sentence names."""
    MALFORMED = "malformed"
    """The request makes no sense: nobody would carry it out."""
    NOT_FOUND = "not_found"
    """What was asked for is not there."""
    NOT_PERMITTED = "not_permitted"
    """The bus does not let the caller say or read this."""
    NOT_READY = "not_ready"
    """The service has not yet learned enough to answer, or the job's program does not run yet."""
    NOT_RECORDED = "not_recorded"
    """The change could not be written down, and was not made."""
    NOT_RUNNING = "not_running"
    """The job does not run, or the attempt is over."""
    REFUSED = "refused"
    """The state of things does not allow it; the sentence says what."""
    SESSION_EXISTS = "session.exists"
    """The caller has a session of this name that is not over."""
    SESSION_OVER = "session.over"
    """The session is over, or is being stopped: nothing of it can be changed."""
    SPOOL = "spool"
    """The directory for files of jobs cannot be used."""
    STOPPING = "stopping"
    """The service is about to stop."""
    TOO_LARGE = "too_large"
    """The request, or the answer to it, is larger than is allowed."""
    TOO_SLOW = "too_slow"
    """The answer would take too long."""
    UNACCEPTABLE = "unacceptable"
    """The value cannot be set."""
    UNAVAILABLE = "unavailable"
    """Something that the service needs is not there at the moment; ask again later."""
    UNKNOWN = "unknown"
    """Nothing is known of the request that is asked about."""
    UNKNOWN_DAEMON = "unknown_daemon"
    """The master has no daemon of this name."""
    UNREADABLE = "unreadable"
    """The file is known, and cannot be read."""
    UNSUPPORTED = "unsupported"
    """The service does not know how."""


NOT_NOW = frozenset({RefusalCode.BEHIND, RefusalCode.BUSY, RefusalCode.STOPPING, RefusalCode.UNAVAILABLE})
"""Refusals by a service that may accept the same request later, or whose next process will."""
