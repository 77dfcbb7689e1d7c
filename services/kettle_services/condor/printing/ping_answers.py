"""What a daemon said to condor_ping, in the forms in which HTCondor prints it."""

import sys
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kettle.auth.mapping.levels import Level
from kettle_services.condor.configuration import version
from kettle_wire.ads.types import Ad
from kettle_wire.commands.rights import RightAt

LEVELS: Final = (
    Level.READ, Level.WRITE, Level.NEGOTIATOR, Level.ADMINISTRATOR, Level.OWNER, Level.CONFIG, Level.DAEMON,
    Level.ADVERTISE_STARTD, Level.ADVERTISE_SCHEDD, Level.ADVERTISE_MASTER,
)  # fmt: skip
"""In the order in which HTCondor tries them for ALL, and has numbered its commands that are for nothing else."""
NUMBERS: Final = {level.value: 60020 + place for place, level in enumerate(LEVELS)}
ALLOW: Final = "ALLOW"
"""What everybody may who is let in at all."""
NOP: Final = "DC_NOP"
NUMBER_OF_NOP: Final = 60011
_TITLES: Final = "         Instruction Authentication Encryption Integrity Decision Identity\n"


class Token(msgspec.Struct, frozen=True):
    """What is tried: a level, or a command of the daemon."""

    typed: str
    level: str = ""
    command: str = ""

    @property
    def number(self) -> int:
        """HTCondor's number of the command that is for nothing but this; 0: it has none."""
        return NUMBER_OF_NOP if self.level == ALLOW else NUMBERS.get(self.level, 0)


class Answer(msgspec.Struct, frozen=True):
    """What the daemon says to one token."""

    token: Token
    right: RightAt
    identity: str


class Daemon(msgspec.Struct, frozen=True):
    """The daemon that is asked, and what of the connection to it is known."""

    shown: str
    method: str
    encryption: str
    """Empty: there is none."""


def ad(answer: Answer, daemon: Daemon) -> Ad:
    """An answer with the attributes that HTCondor has for it, and with the rule."""
    yes_or_no = "YES" if daemon.encryption else "NO"
    found: Ad = {
        "AuthCommand": answer.token.number,
        "Authentication": "NO" if daemon.method == "ANONYMOUS" else "YES",
        "AuthMethods": daemon.method,
        "AuthorizationSucceeded": answer.right.allowed,
        "Encryption": yes_or_no,
        "From": daemon.shown,
        "Integrity": yes_or_no,
        "Level": answer.right.level,
        "MyRemoteUserName": answer.identity,
        "Name": answer.token.typed,
        "Result": "ALLOWED" if answer.right.allowed else "DENIED",
        "Rule": answer.right.rule,
    }
    if daemon.encryption:
        found["CryptoMethods"] = daemon.encryption
    if answer.right.missing:
        found["Missing"] = answer.right.missing
    return found


def _sentences(answers: list[Answer], daemon: Daemon) -> None:
    encryption, integrity = daemon.encryption or "no encryption", daemon.encryption or "no integrity"
    for answer in answers:
        outcome = "succeeded" if answer.right.allowed else "failed"
        sys.stdout.write(
            f"{answer.token.typed} command using ({encryption}, {integrity}, and {daemon.method}) {outcome}"
            f" as {answer.identity} to {daemon.shown}.\n"
        )


def _table(answers: list[Answer], daemon: Daemon) -> None:
    sys.stdout.write(_TITLES)
    security = daemon.encryption or "none"
    for answer in answers:
        decision = "    ALLOW " if answer.right.allowed else "     DENY "
        sys.stdout.write(
            f"{answer.token.typed:>20}{daemon.method:>15}{security:>11}{security:>10}{decision}{answer.identity}\n"
        )


def _paragraphs(answers: list[Answer], daemon: Daemon) -> None:
    for answer in answers:
        rows: Mapping[str, str] = {
            "Destination": daemon.shown,
            "Local  Version": version(),
            "Instruction": answer.token.typed,
            "Command": str(answer.token.number),
            "Encryption": daemon.encryption or "none",
            "Integrity": daemon.encryption or "none",
            "Authenticated using": daemon.method,
            "Remote Mapping": answer.identity,
            "Authorized": "TRUE" if answer.right.allowed else "FALSE",
            "Level": answer.right.level,
            "Rule": answer.right.rule,
            **({"Missing": answer.right.missing} if answer.right.missing else {}),
        }
        sys.stdout.writelines(f"{f'{title}:':<28} {value}\n" for title, value in rows.items())
        sys.stdout.write("\n")


def _nothing(_answers: list[Answer], _daemon: Daemon) -> None:
    """Only the exit status."""


FORMS: Final[Mapping[str, Callable[[list[Answer], Daemon], None]]] = {
    "": _sentences,
    "table": _table,
    "verbose": _paragraphs,
    "quiet": _nothing,
}
