"""
Credentials that people store for their jobs; iam is asked in the person's name, and nothing of them is kept here.
"""

from datetime import UTC, datetime

from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.rest.credentials import (
    CredentialChanged,
    CredentialToStore,
    RemoveServiceCredential,
    StoredCredentials,
    StoredCredentialShown,
    StoreServiceCredential,
)


class CredentialQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections) -> None:
        self._people = people

    async def list(self, asked: Asked) -> Answer:
        """Which there are."""
        async with self._people.of(asked.person) as client:
            kept = await client.iam.credentials()
        shown = [
            StoredCredentialShown(
                service=each.service,
                handle=each.handle,
                kind=each.kind,
                stored=datetime.fromtimestamp(each.stored, UTC),
            )
            for each in kept.credentials
        ]
        return Answer(StoredCredentials(credentials=shown, services=kept.services))

    async def store(self, asked: Asked) -> Answer:
        """Keep one."""
        parameters: StoreServiceCredential = asked.parameters
        body: CredentialToStore = asked.body
        async with self._people.of(asked.person) as client:
            await client.iam.store_credential(parameters.service, body.text, handle=parameters.handle)
        return Answer(CredentialChanged(service=parameters.service, handle=parameters.handle))

    async def remove(self, asked: Asked) -> Answer:
        """Keep one no longer."""
        parameters: RemoveServiceCredential = asked.parameters
        async with self._people.of(asked.person) as client:
            await client.iam.remove_credential(parameters.service, handle=parameters.handle)
        return Answer(CredentialChanged(service=parameters.service, handle=parameters.handle))
