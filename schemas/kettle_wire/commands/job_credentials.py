"""
What iam is asked for jobs: by shadows for tokens of running attempts, by people about the credentials that they store for their jobs.
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.commands.iam import Recorded
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Repeat
from kettle_wire.job_tokens import JobToken
from kettle_wire.jobs import JobId, Name, Number

LONGEST_CREDENTIAL: Final = 64 * 1024
"""Characters of a stored credential."""
ServiceName = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*$")]
"""A service of which jobs have tokens; part of the name of a file."""
Handle = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9_]*$")]
"""Tells several credentials of one service apart; empty: there is one."""


class IssueJobTokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have the tokens of an attempt; whose they are, and what they say, iam asks the job's queue."""

    schedd: Name
    job: JobId
    attempt: Number


class JobTokensMade(msgspec.Struct, frozen=True, kw_only=True):
    """They are stored nowhere."""

    tokens: list[JobToken]


class EndJobTokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An attempt is over: what is left of its tokens is not valid any more. A repeat changes nothing."""

    schedd: Name
    job: JobId
    attempt: Number


class JobTokensEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded."""


class StoreCredential(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Keep a token of a service for the caller's jobs: the token itself, or the JSON of an OAuth answer with an `access_token` or a
    `refresh_token`.
    """

    id: CommandId
    service: ServiceName
    handle: Handle = ""
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_CREDENTIAL)]

    def __repr__(self) -> str:
        """Without the secret."""
        return f"StoreCredential({self.service}, {self.handle})"


class RemoveCredential(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keep it no longer."""

    id: CommandId
    service: ServiceName
    handle: Handle = ""


class ListCredentials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The caller's stored credentials, and what iam could keep for him."""


class CredentialShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of them; nobody is shown what is in it."""

    service: str
    handle: str
    kind: str
    """`token`, or `refresh`: iam gets access tokens with it."""
    stored: float


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    credentials: list[CredentialShown]
    services: dict[str, str]
    """The services with which iam exchanges refresh tokens, and where people get one."""
    ours: list[str]
    """The services whose tokens iam signs, for which nothing has to be stored."""


ISSUE_JOB_TOKENS = Endpoint(
    "iam",
    "issue_job_tokens",
    IssueJobTokens,
    JobTokensMade,
    callers=(Caller.SHADOW,),
    repeat=Repeat.HARMLESS,
)
END_JOB_TOKENS = Endpoint(
    "iam", "end_job_tokens", EndJobTokens, JobTokensEnded, callers=(Caller.SHADOW,), repeat=Repeat.HARMLESS
)
STORE_CREDENTIAL = Endpoint(
    "iam", "store_credential", StoreCredential, Recorded, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER
)
REMOVE_CREDENTIAL = Endpoint(
    "iam", "remove_credential", RemoveCredential, Recorded, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER
)
LIST_CREDENTIALS = Endpoint(
    "iam", "list_credentials", ListCredentials, Credentials, callers=(Caller.USER,), repeat=Repeat.QUERY
)
