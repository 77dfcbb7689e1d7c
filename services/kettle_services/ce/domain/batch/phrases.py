"""What the errors of the commands of batch systems mean; those of Slurm are in `kettle.commands.phrases`."""

from typing import Final

from kettle.commands.phrases import Phrases

LSF: Final = Phrases(
    # `bsub` asks again and again by itself: that it gives up does not say whether one of its questions arrived.
    silent=r"LSF daemon not responding|LSF is down|Failed in an LSF library call|batch daemon not responding|Cannot connect|LIM is down|"
    r"still trying",
    unknown=r"No (matching|unfinished) job found|is not found|already finished",
    passing=r"limit|Queue is closed|not accepting|Too many",
)
PBS: Final = Phrases(
    unreachable=r"cannot connect to server|Connection refused|No default server|Unknown Host|Batch protocol error",
    silent=r"End of File|timed? ?out|Premature end of message",
    unknown=r"Unknown Job Id|Job has finished|Request invalid for (finished|state of) job",
    passing=r"would exceed|Maximum number of jobs|not allowed at this time|Queue is not enabled",
)
GRID_ENGINE: Final = Phrases(
    unreachable=r"got send error|Connection refused|unable to contact qmaster|can.t resolve|qmaster is not running|"
    r"unable to send message to qmaster",
    silent=r"got read error|timeout|Connection reset|failed receiving gdi",
    unknown=r"does not exist|already in deletion|not found|registered the job",
    passing=r"too many|limit",
)
