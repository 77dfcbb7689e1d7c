"""
Credentials that people store for their jobs, over HTTP: what is sent is shown to nobody, and given to the jobs of who has sent it.
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.commands.job_credentials import LONGEST_CREDENTIAL, Handle, ServiceName
from kettle_wire.rest.route import Moment, Route

_ERRORS: Final = (404, 413, 415, 422)


class ListStoredCredentials(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the credentials that you have stored for your jobs, without what is in them."""


class StoredCredentialShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    service: str
    handle: str
    kind: str
    """`token`, or `refresh`: iam gets access tokens with it."""
    stored: Moment


class StoredCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    credentials: list[StoredCredentialShown]
    services: dict[str, str]
    """The services with which iam exchanges refresh tokens, and where people get one."""


class StoreServiceCredential(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Keep a credential of a service for your jobs, in the place of the one before: jobs with `use_oauth_services` have it while they run,
    and a running one gets the new one in its place.
    """

    service: ServiceName
    handle: Handle = ""
    """Tells several credentials of one service apart."""


class CredentialToStore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept, enciphered."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_CREDENTIAL)]
    """A token, or the JSON of an OAuth answer with an `access_token` or a `refresh_token`."""

    def __repr__(self) -> str:
        """Without the secret."""
        return "CredentialToStore()"


class RemoveServiceCredential(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keep a credential no longer; what running jobs have of it they keep until it ends."""

    service: ServiceName
    handle: Handle = ""


class CredentialChanged(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded."""

    service: str
    handle: str


LIST_CREDENTIALS = Route(
    "GET",
    "/credentials",
    "list_credentials",
    parameters=ListStoredCredentials,
    reply=StoredCredentials,
    errors=(404,),
)
STORE_CREDENTIAL = Route(
    "PUT",
    "/credentials/{service}",
    "store_credential",
    parameters=StoreServiceCredential,
    body=CredentialToStore,
    reply=CredentialChanged,
    level="WRITE",
    errors=_ERRORS,
)
REMOVE_CREDENTIAL = Route(
    "DELETE",
    "/credentials/{service}",
    "remove_credential",
    parameters=RemoveServiceCredential,
    reply=CredentialChanged,
    level="WRITE",
    errors=(404, 422),
)
