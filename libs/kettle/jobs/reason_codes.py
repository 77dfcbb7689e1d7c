"""
The names of HTCondor's reason codes, and the attributes that count holds and evictions by them.

`NumHoldsByReason = [ UserRequest = 1; JobPolicy = 3 ]`: an ad within the ad, so that a policy may say
`NumHoldsByReason.JobPolicy > 2`.
"""

import re
from functools import lru_cache
from typing import Final

from kettle_wire.ads.types import Expr, Scalar

_HOLDS: Final = """
    0 Unspecified 1 UserRequest 2 GlobusGramError 3 JobPolicy 4 CorruptedCredential 5 JobPolicyUndefined
    6 FailedToCreateProcess 7 UnableToOpenOutput 8 UnableToOpenInput 9 UnableToOpenOutputStream
    10 UnableToOpenInputStream 11 InvalidTransferAck 12 TransferOutputError 13 TransferInputError 14 IwdError
    15 SubmittedOnHold 16 SpoolingInput 17 JobShadowMismatch 18 InvalidTransferGoAhead 19 HookPrepareJobFailure
    20 MissedDeferredExecutionTime 21 StartdHeldJob 22 UnableToInitUserLog 23 FailedToAccessUserAccount
    24 NoCompatibleShadow 25 InvalidCronSettings 26 SystemPolicy 27 SystemPolicyUndefined
    32 MaxTransferInputSizeExceeded 33 MaxTransferOutputSizeExceeded 34 JobOutOfResources 35 InvalidDockerImage
    36 FailedToCheckpoint 43 PreScriptFailed 44 PostScriptFailed 45 SingularityTestFailed 46 JobDurationExceeded
    47 JobExecuteExceeded 48 HookShadowPrepareJobFailure 49 CannotSwitchPrimaryGroup
    """

_VACATES: Final = """
    1000 JobPolicyVacate 1001 SystemPolicyVacate 1002 ShadowException 1003 JobNotStarted 1004 UserVacateJob
    1005 JobShouldRequeue 1006 FailedToActivateClaim 1007 StarterError 1008 ReconnectFailed 1009 ClaimDeactivated
    1010 StartdVacateCommand 1011 StartdPreemptExpression 1012 StartdException 1013 StartdShutdown
    1014 StartdDraining 1015 StartdCoalesce 1016 StartdHibernate 1017 StartdReleaseCommand
    1018 StartdPreemptingClaimRank 1019 StartdPreemptingClaimUserPrio 1020 VMError 1021 ContainerError
    1022 ScheddVacate 1023 JobRemoved 1024 ScratchDirError 1025 SuccessfulCheckpoint
    1026 ActivationRefusedBadRequest 1027 ActivationRefusedNoMatch 1028 ActivationRefusedStillCleaning
    1029 ActivationRefusedWorklifeExpired 1030 ActivationRefusedPreempted 1031 ActivationRefusedBroken
    1032 ActivationRefusedNotIdle 1033 ActivationRefusedUnclaimed 1034 ActivationRefusedClaimNotFound
    1035 ActivationRefusedOldClaim 1036 ActivationRefusedUnhealthy 1037 StartdRehoming
    """

_COUNT: Final = re.compile(r"(\w+) = (\d+)")


def _names(table: str) -> dict[int, str]:
    words = table.split()
    return {int(code): name for code, name in zip(words[::2], words[1::2], strict=True)}


NAMES: Final = _names(_HOLDS) | _names(_VACATES)
"""HoldReasonCode (below 1000) or VacateReasonCode -> its name."""


@lru_cache(maxsize=1024)
def counted(so_far: Scalar | None, code: int) -> Expr:
    """An attribute that counts by reason, after one more of this code; None: there was none yet."""
    counts = dict(_COUNT.findall(so_far.expr)) if isinstance(so_far, Expr) else {}
    name = NAMES.get(code, f"Code{code}")
    counts[name] = str(int(counts.get(name, "0")) + 1)
    return Expr("[ " + "; ".join(f"{each} = {count}" for each, count in counts.items()) + " ]")
