"""What all attempts of a shadow share."""

import msgspec

from kettle_services.shadow.chirping import Terms
from kettle_services.shadow.file_work import FileWork
from kettle_services.shadow.inputs import Inputs
from kettle_services.shadow.places import Places
from kettle_services.shadow.queueing import TransferQueue
from kettle_services.shadow.reporter import Reporter
from kettle_services.shadow.spool import Spool
from kettle_services.shadow.spooled import SpooledFiles
from kettle_services.shadow.workers import Workers


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
