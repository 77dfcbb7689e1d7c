"""
Who may connect to the pool's own NATS server: one NKey per service, one for the person whose pool it is, and one for each
schedd of another pool that may send jobs, and for each collector of another that may forward ads.
"""

import os
import pwd
from collections.abc import Mapping, Sequence

from kettle.auth.bus_permissions import ADMINISTRATOR, FORWARDER, MONITOR, VISITOR, permissions
from kettle.embedded import Permissions
from kettle_services.master.account_access import credential_of
from kettle_services.master.domain.start_order import role_of, shards
from kettle_wire.identity import Identity, daemon, user, visitor
from kettle_wire.subjects import Subjects

PERSON = "user"
"""The name of the person's credential."""

MASTER = "master"
"""The name of the master's own credential."""

AUDIT = "audit"
"""The name of the credential with which `kettle log check` reads the frames."""


def login_name() -> str:
    """The login name of the person, or the number of an account that has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def visitors_credential(name: str) -> str:
    """The name of the credential of a visiting schedd, or of a collector that forwards."""
    return f"{VISITOR}-{name}"


def bus_users(
    pool: str,
    daemons: Sequence[str],
    visitors: Sequence[str] = (),
    forwarders: Sequence[str] = (),
    accounts: Sequence[str] = (),
) -> dict[str, Permissions]:
    """
    By name of the credential, what its holder may do on the bus; `daemons` are entries of the daemon list, `visitors` the
    names of other pools' schedds that may send jobs, `forwarders` those of other pools' collectors that may forward ads, `accounts` other accounts of this machine
    that may use the pool.
    """
    subjects = Subjects(pool)
    owned = shards(daemons)
    identities: dict[str, Identity] = {role: daemon(role) for role in (*map(role_of, daemons), AUDIT, MASTER)}
    identities[MONITOR] = daemon(MONITOR)
    identities[PERSON] = user(login_name())
    users = {name: _allowed(name, subjects, identity, owned) for name, identity in identities.items()}
    for name in accounts:
        publish, subscribe = permissions("user", subjects, user(name))
        users[credential_of(name)] = Permissions(publish=publish, subscribe=subscribe, replies=False)
    for name in visitors:
        publish, subscribe = permissions(VISITOR, subjects, visitor(name))
        users[visitors_credential(name)] = Permissions(publish=publish, subscribe=subscribe, replies=True)
    for name in forwarders:
        publish, subscribe = permissions(FORWARDER, subjects, visitor(name))
        users[visitors_credential(name)] = Permissions(publish=publish, subscribe=subscribe, replies=False)
    return users


def _allowed(
    name: str, subjects: Subjects, identity: Identity, owned: Mapping[str, Sequence[str]]
) -> Permissions:
    role = ADMINISTRATOR if name == PERSON else name
    publish, subscribe = permissions(role, subjects, identity, shards=owned)
    if name == PERSON:  # the pool is theirs: nobody's events are closed to them
        more = permissions(MONITOR, subjects, identity)
        publish, subscribe = [*publish, *more[0]], [*subscribe, *more[1]]
    return Permissions(publish=publish, subscribe=subscribe, replies=identity.kind == "daemon")
