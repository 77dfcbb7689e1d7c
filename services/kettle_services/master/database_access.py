"""
The database as the master prepares it: its schema, and a role for each service, with the address that each is
given.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from kettle.embedded import EmbeddedPostgres
from kettle_services.master.settings import MasterSettings

if TYPE_CHECKING:
    from kettle.storage.database import Connection
    from kettle.storage.migration import Stage

ARCHIVER: Final = "archiver"
"""The role that accounting takes to move old events to files."""

_PATIENCE_S: Final = 30.0

_log: Final = logging.getLogger(__name__)


def migration_stages(*, post: bool | None, own: bool) -> "tuple[Stage, ...]":
    """
    The steps that a master takes, where its settings say `post` of the last ones.

    The pool's `own` server is reached from this host alone, whose services are all started anew; behind another there may be hosts
    that have not been upgraded yet.
    """
    return ("pre", "post") if (own if post is None else post) else ("pre",)


class DatabaseAccess:
    """
    The database of one pool: of a server of ours the roles are made here, of another server the site names them.
    """

    def __init__(self, settings: MasterSettings, server: EmbeddedPostgres | None) -> None:
        self._settings = settings
        self._server = server
        self._roles: dict[str, str] = {}

    @property
    def owner_url(self) -> str:
        """The address for the role that owns the schema."""
        return self._settings.database_url if self._server is None else self._server.dsn

    def url_of(self, service: str) -> str:
        """The address that a service is given."""
        if self._server is not None and (role := self._roles.get(service)):
            return self._server.dsn_as(role)
        return self._settings.database_urls.get(service, self.owner_url)

    async def prepare(self) -> None:
        """
        Bring the schema up to date, and on a server of ours the roles and their rights; nothing if the schema is not ours to change.
        """
        if not self._settings.migrate:
            return
        # Not loaded by masters that have no database.
        from kettle.storage.database import Database
        from kettle.storage.migration import migrate

        stages = migration_stages(post=self._settings.migrate_post, own=self._server is not None)
        async with Database.connect(self.owner_url, connections=1) as database:
            await database.run(partial(migrate, stages=stages), patience=_PATIENCE_S)
            await database.run(self._give_rights, patience=_PATIENCE_S)

    async def _give_rights(self, connection: "Connection") -> None:
        from kettle.storage import service_roles

        server, given = self._server, await service_roles.given(connection)
        if server is None:
            if given not in {"", service_roles.version()}:
                _log.warning(
                    "the roles of the database have the rights of another release; give them those of this one: "
                    "kettle log roles DATABASE | psql DATABASE"
                )
            return
        roles = {each: service_roles.role_name(server.database, each) for each in service_roles.RIGHTS}
        if given != service_roles.version() or not all(map(server.has_password, roles.values())):
            passwords = {service: server.password_of(role) for service, role in roles.items()}
            await service_roles.give(connection, passwords)
        self._roles = roles
