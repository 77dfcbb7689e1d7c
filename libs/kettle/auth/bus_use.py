"""The subjects on which somebody uses the streams of the bus."""

from typing import Final

from kettle_wire.subjects import API, GUESTS_API, Subjects

_FROM_OTHERS: Final = "_R_.>"
"""Where the server waits for the answers to questions from other accounts; it makes a subject for each."""


class BusUse:
    """How one of those whom permissions are for uses JetStream."""

    def __init__(self, subjects: Subjects, *, guest: bool) -> None:
        self.subjects = subjects
        self.guest = guest
        self.api = GUESTS_API if guest else API

    @property
    def answers(self) -> list[str]:
        """Where those wait who have asked: in our account, and in others."""
        return [_FROM_OTHERS] if self.guest else ["_INBOX.>", _FROM_OTHERS]

    def looks(self, stream: str) -> str:
        """Look at a stream."""
        return f"{self.api}.STREAM.INFO.{stream}"

    def makes(self, stream: str) -> list[str]:
        """Look at a stream, and make it if it is not there; guests make none."""
        return (
            [self.looks(stream)] if self.guest else [self.looks(stream), f"{self.api}.STREAM.CREATE.{stream}"]
        )

    def asks_for(self, stream: str) -> list[str]:
        """Have a collector make a stream, as guests of access points do that have joined."""
        return [f"{self.api}.STREAM.CREATE.{stream}"] if self.guest else []

    def reads(self, stream: str, subject: str, reader: str = "*") -> list[str]:
        """
        Read some subjects of a stream: they are part of the request for a consumer, which the server compares with the consumer's
        filter, and for guests a collector answers.
        """
        api = self.api
        return [
            self.looks(stream),
            f"{api}.CONSUMER.CREATE.{stream}.{reader}.{subject}",
            f"{api}.CONSUMER.INFO.{stream}.{reader}",
            f"{api}.CONSUMER.DELETE.{stream}.{reader}",
            f"{api}.CONSUMER.MSG.NEXT.{stream}.{reader}",
            f"$JS.ACK.{stream}.>" if reader == "*" else f"$JS.ACK.{stream}.{reader}.>",
        ]
