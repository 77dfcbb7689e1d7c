"""What a machine shows to publish the services of one run of a job."""

import msgspec

from kettle_wire.jobs import JobId


class TicketRefusedError(Exception):
    """It is none, or not any more; the text is one sentence."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Ticket(msgspec.Struct, frozen=True):
    """For which run of which job."""

    schedd: str
    job: JobId
    attempt: int
    owner: str
    expires: float
