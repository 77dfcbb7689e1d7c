"""Whether the credentials are stored that jobs want tokens from: who submits them can still store one."""

from collections.abc import Mapping
from typing import Final

from kettle.client.connections.transport import Requests
from kettle.client.errors import ClientError
from kettle.jobs.needed_tokens import needed_tokens
from kettle_wire.commands.job_credentials import LIST_CREDENTIALS, Credentials, ListCredentials
from kettle_wire.job_tokens import NeededToken

_PATIENCE_S: Final = 2.0
"""A pool need not have an iam, and one that is away keeps nobody from submitting: then the job is held with the same words."""


async def stored_credentials(requests: Requests) -> Credentials | None:
    """What is stored; None: nobody answers."""
    try:
        return await requests.ask(LIST_CREDENTIALS, ListCredentials(), patience=_PATIENCE_S)
    except ClientError:
        return None


async def require_stored(requests: Requests, ad: Mapping[str, object]) -> None:
    """Raise ClientError with what to do if one is missing."""
    known = await stored_credentials(requests)
    if known is not None and (missing := missing_credentials(ad, known)):
        raise ClientError(missing)


def missing_credentials(ad: Mapping[str, object], known: Credentials) -> str:
    """What to do; empty: nothing is missing."""
    stored = {(each.service, each.handle) for each in known.credentials}
    missing = [
        needed
        for needed in needed_tokens(ad)
        if needed.service not in known.ours and (needed.service, needed.handle) not in stored
    ]
    return "\n".join(_sentence(needed, known) for needed in missing)


def _sentence(needed: NeededToken, known: Credentials) -> str:
    handle = f" -H {needed.handle}" if needed.handle else ""
    where = known.services.get(needed.service, "")
    first = f"get a token ({where}) and " if where else ""
    return (
        f"no credential of {needed.service}{f', {needed.handle},' if handle else ''} is stored for your jobs: {first}store it with"
        f" condor_store_cred add-oauth -s {needed.service}{handle} -i FILE, then submit again"
    )
