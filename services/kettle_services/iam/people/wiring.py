"""How the parts hang together that let people in who show a token."""

import os
import ssl
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from kettle.accounts.lookup import own_name
from kettle.auth.idtokens.pool_key import KeyFileError, read_key, signing_secret
from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.keys.fetching import FetchLimits, HttpFetcher
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verifier import Verifier
from kettle.auth.trust.callout import WATCHER, CalloutKeys, PeopleSigner
from kettle.runtime import Runtime, SettingsError
from kettle.runtime.policy_in_force import PolicyInForce
from kettle.runtime.settings import config_path
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.grants import Grants
from kettle_services.iam.idtokens import pool_places
from kettle_services.iam.people.connections import PeopleConnections
from kettle_services.iam.people.heard_questions import HeardQuestions, connected
from kettle_services.iam.people.identification import Identification, PoolKeys
from kettle_services.iam.people.responder import Responder
from kettle_services.iam.people.told import ToldPeople
from kettle_services.iam.record import Record
from kettle_services.iam.settings import IamSettings


def policy_of(settings: IamSettings, administrators: Callable[[], Collection[str]]) -> PolicyInForce:
    """What the site says."""
    return PolicyInForce("iam", settings.authorization, config_path(os.environ), administrators)


async def identification_of(
    rt: Runtime, settings: IamSettings, record: Record, grants: Grants, policy: PolicyInForce, url: str
) -> Identification:
    """What checks tokens; it fetches the keys of issuers as long as the service runs."""
    limits = FetchLimits(private_hosts=frozenset(settings.issuers_within), plain_loopback=True)
    fetcher = await rt.enter(HttpFetcher.open(limits, tls=_authorities(settings)))
    verifier = Verifier(_issuers(settings, url), KeyCache(fetcher))
    places = pool_places(settings)
    keys = PoolKeys(places.trust_domain, partial(_secrets, places.pool_key, places.keys))
    reserved = {"root", own_name()}
    return Identification(record, grants, verifier, keys, policy, url=url, reserved=reserved)


async def let_people_in(
    rt: Runtime,
    settings: IamSettings,
    questions: HeardQuestions,
    keys: CalloutKeys,
    identification: Identification,
    policy: PolicyInForce,
    record: Record,
    denials: DenialRecord,
    told: ToldPeople,
    *,
    changed: bool,
) -> None:
    """Answer the bus from now on; `changed`: rules or issuers have, since an iam ran last."""
    watcher = await connected(rt, settings, WATCHER, keys.watcher)
    connections = PeopleConnections(watcher, keys.people_account, identification, policy, record, told)
    responder = Responder(questions, PeopleSigner(keys), identification, connections, told, denials)
    await connections.listen()
    rt.loop(responder.run(), name="people")
    rt.loop(connections.run(changed=changed), name="withdrawals")


def _issuers(settings: IamSettings, url: str) -> Issuers:
    """Those that the settings name; without an audience their tokens are for the address of this iam."""
    try:
        return Issuers(
            Issuer(url=issuer, audiences=audiences or (url,))
            for issuer, audiences in settings.issuers.items()
        )
    except ValueError as error:
        raise SettingsError(f"issuers: {error}") from error


def _authorities(settings: IamSettings) -> ssl.SSLContext | None:
    if not settings.issuers_ca:
        return None
    try:
        context = ssl.create_default_context()
        context.load_verify_locations(settings.issuers_ca)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"issuers_ca: {settings.issuers_ca} cannot be used: {error}") from error
    return context


def _secrets(pool_key: Path, others: Path) -> Mapping[str, bytes]:
    """The keys that sign IDTOKENS, by their names; one that cannot be used signs nothing here."""
    found: dict[str, bytes] = {}
    named = {path.name: path for path in sorted(others.glob("*"))} if others.is_dir() else {}
    for name, path in {**named, "POOL": pool_key}.items():
        try:
            found[name] = signing_secret(name, read_key(path))
        except KeyFileError:
            continue
    return found
