"""What all attempts of a shadow share."""

import msgspec

from kettle.shadow.chirping import Terms
from kettle.shadow.file_work import FileWork
from kettle.shadow.inputs import Inputs
from kettle.shadow.places import Places
from kettle.shadow.queueing import TransferQueue
from kettle.shadow.reporter import Reporter
from kettle.shadow.spool import Spool
from kettle.shadow.spooled import SpooledFiles
from kettle.shadow.workers import Workers


class SubmitSide(msgspec.Struct, frozen=True):
    """What all attempts of a shadow share."""

    shadow: str
    account: str
    """Whose jobs it looks after: the account that it acts as."""
    places: Places
    inputs: Inputs
    workers: Workers
    reporter: Reporter
    max_output: int
    """Bytes that the results of one job may have."""
    spool: Spool
    spooled: SpooledFiles
    queue: TransferQueue
    terms: Terms
    file_work: FileWork
