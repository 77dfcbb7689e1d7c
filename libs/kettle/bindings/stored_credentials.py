"""Credd: the tokens of services that the pool keeps for its users' jobs."""

from collections.abc import Sequence
from typing import Final, NoReturn

from kettle.bindings.ads import ClassAd
from kettle.bindings.daemon_locations import pool_of
from kettle.bindings.enumerations import CredType
from kettle.bindings.errors import HTCondorValueError, NotCarriedOutError
from kettle.bindings.pool_connections import ask, known
from kettle.client import PoolFile
from kettle_wire.commands.job_credentials import CredentialShown

_ONLY_TOKENS: Final = "this pool keeps neither passwords nor tickets of Kerberos: jobs here need none"


class CredCheck:
    """What is known of credentials that were asked about."""

    def __init__(self, services: Sequence[str], url_or_error: str | None) -> None:
        self._services = list(services)
        self._error = url_or_error

    @property
    def present(self) -> bool:
        """Whether all are there."""
        return self._error is None

    @property
    def services(self) -> list[str]:
        """Which were asked for."""
        return self._services

    @property
    def url(self) -> str | None:
        """Where to get them: a pool has no page for that."""
        return None

    @property
    def error(self) -> str | None:
        """Why they are not there."""
        return self._error

    def __bool__(self) -> bool:
        return self.present

    def __str__(self) -> str:
        return self._error or ""


class Credd:
    """The stored credentials of the user: each is his own, and nobody can name another one."""

    def __init__(self, location: ClassAd | None = None) -> None:
        self._pool: PoolFile | None = None if location is None else pool_of(location, "iam")

    def check_user_service_creds(
        self, credtype: CredType, serviceAds: Sequence[ClassAd], user: str | None = None
    ) -> CredCheck:
        """
        Whether the credentials are stored that jobs want: one for each ad with `Service` and perhaps `Handle`.
        """
        _require_tokens(credtype, user)
        wanted = [(str(ad["Service"]), str(ad.get("Handle", ""))) for ad in serviceAds]
        found = ask(known(self._pool), lambda client: client.iam.credentials())
        stored = {(each.service, each.handle) for each in found.credentials}
        missing = [
            service
            for service, handle in wanted
            if service not in found.ours and (service, handle) not in stored
        ]
        sentence = (
            f"no credential is stored of {', '.join(missing)}: condor_store_cred add-oauth -s SERVICE -i FILE"
        )
        return CredCheck([service for service, _ in wanted], sentence if missing else None)

    def add_user_service_cred(
        self,
        credtype: CredType,
        credential: bytes | None,
        service: str,
        handle: str | None = None,
        user: str | None = None,
        refresh: bool | None = None,
    ) -> None:
        """Keep a token, or the JSON of an OAuth answer."""
        _require_tokens(credtype, user)
        if not credential:
            raise HTCondorValueError("a credential is needed: this pool fetches none by a producer")
        text = credential.decode("utf-8", "replace")
        ask(
            known(self._pool),
            lambda client: client.iam.store_credential(service, text, handle=handle or ""),
        )

    def delete_user_service_cred(
        self, credtype: CredType, service: str, handle: str | None = None, user: str | None = None
    ) -> None:
        """Keep one no longer."""
        _require_tokens(credtype, user)
        ask(known(self._pool), lambda client: client.iam.remove_credential(service, handle=handle or ""))

    def query_user_service_cred(
        self, credtype: CredType, service: str, handle: str | None = None, user: str | None = None
    ) -> str | None:
        """When it was stored, in seconds since the epoch; None: it is not."""
        _require_tokens(credtype, user)
        found = self._found(service, handle or "")
        return None if found is None else str(int(found.stored))

    def _found(self, service: str, handle: str) -> CredentialShown | None:
        credentials = ask(known(self._pool), lambda client: client.iam.credentials()).credentials
        named = (each for each in credentials if (each.service, each.handle) == (service, handle))
        return next(named, None)

    def get_oauth2_credential(self, service: str, handle: str, user: str | None = None) -> NoReturn:
        """Not carried out: what is stored is given to jobs alone."""
        raise NotCarriedOutError("a stored credential is given to jobs alone, and shown to nobody")

    def query_password(self, user: str | None = None) -> bool:
        """Whether there is one."""
        return False

    def delete_password(self, user: str | None = None) -> bool:
        """Whether there was one."""
        return False

    def add_password(self, password: str, user: str | None = None) -> NoReturn:
        """Not carried out."""
        raise NotCarriedOutError(_ONLY_TOKENS)

    def add_user_cred(
        self, credtype: CredType, credential: bytes | None, user: str | None = None
    ) -> NoReturn:
        """Not carried out."""
        raise NotCarriedOutError(_ONLY_TOKENS)

    def delete_user_cred(self, credtype: CredType, user: str | None = None) -> NoReturn:
        """Not carried out."""
        raise NotCarriedOutError(_ONLY_TOKENS)

    def query_user_cred(self, credtype: CredType, user: str | None = None) -> NoReturn:
        """Not carried out."""
        raise NotCarriedOutError(_ONLY_TOKENS)


def _require_tokens(credtype: CredType, user: str | None) -> None:
    if credtype != CredType.OAuth:
        raise NotCarriedOutError(_ONLY_TOKENS)
    if user:
        raise NotCarriedOutError(f"{user}: everybody stores credentials of his own alone")
