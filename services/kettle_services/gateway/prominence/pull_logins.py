"""
Logins of image registries that came with documents, stored as credentials of who has sent them: jobs have them by iam, and nothing else does.
"""

from kettle.bus.ports import BusError
from kettle.client import Client, ClientError
from kettle.client.errors import CommandRefusedError
from kettle.jobs.image_registries import SERVICE
from kettle.prominence.pull_credentials import Logins
from kettle_services.gateway.prominence.application import refused


async def store(client: Client, logins: Logins) -> None:
    """
    Keep those that are given, and see to it that the others are there.

    Raises RequestRefused: one was to have been sent before and was not, or the pool keeps none.
    """
    if not logins.given and not logins.named:
        return
    try:
        kept = {
            each.handle for each in (await client.iam.credentials()).credentials if each.service == SERVICE
        }
        for handle, text in logins.given.items():
            await client.iam.store_credential(SERVICE, text, handle=handle)
    except CommandRefusedError as error:
        raise refused(f"imagePullCredential cannot be stored: {error}") from error
    except (ClientError, BusError) as error:
        raise refused(
            f"imagePullCredential is stored by the pool's iam, which does not answer: {error}"
        ) from error
    for handle, who in logins.named.items():
        if handle not in kept and handle not in logins.given:
            raise refused(f"no imagePullCredential of {who} is stored: send it with its token")
