"""Pages of administrators: the record, bans, sessions, machines that joined; and the services of hosts."""

from typing import Annotated, Final

import msgspec

from kettle_services.gateway.pages.page import Form, Led, Link, Page, Shown
from kettle_services.gateway.pages.pool.parameters import narrowed
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.alerts import of_hosts
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.commands.iam import Note, Whom
from kettle_wire.rest.administration import (
    CHANGE_BANS,
    END_LOGIN,
    LIST_AUDIT,
    LIST_BANS,
    LIST_HOSTS,
    LIST_LOGINS,
    LIST_WORKERS,
    Audit,
    BanChange,
    Bans,
    ChangeBans,
    Ended,
    EndLogin,
    Host,
    Hosts,
    ListAudit,
    ListBans,
    ListHosts,
    ListLogins,
    ListWorkers,
    Logins,
    Workers,
)
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Moment


class AskedAdministration(ListAudit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries of the record."""

    as_of: Moment | None = None
    """When the record ends that is shown, unless `until` says something else; bans and sessions are those of now."""


class AdministrationView(msgspec.Struct, frozen=True, kw_only=True):
    """What an administrator looks at."""

    asked: AskedAdministration
    audit: Audit
    alarms: int
    """Of the entries that are shown."""
    bans: Bans
    sessions: Logins
    workers: Workers


class NoRecord(msgspec.Struct, frozen=True):
    """Of a pool that keeps none."""

    why: str


class AskedServices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which services: all."""

    as_of: Moment | None = None


class BanFields(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ban."""

    whom: Whom
    reason: Note = ""
    hours: Annotated[float, msgspec.Meta(ge=0, le=250_000)] = 0.0
    """0: until it is lifted."""


class UnbanFields(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to let in again."""

    whom: Whom


class SessionFields(msgspec.Struct, frozen=True, kw_only=True):
    """Which session to end."""

    session: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class ServicesView(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts and their daemons."""

    hosts: list[Host]
    daemons: int
    troubles: list[str]
    """What somebody should look at, in words."""


ADMINISTRATION: Final = Page(
    "/admin",
    "Audit and bans",
    template="pool/administration.html",
    parameters=AskedAdministration,
    level="ADMINISTRATOR",
    link=Link("Administration", 20),
)
SERVICES: Final = Page(
    "/services",
    "Services",
    template="pool/services.html",
    parameters=AskedServices,
    link=Link("Administration", 10),
    only_now=True,
)
_TEMPLATE: Final = "pool/administration.html"
BAN: Final = Form("/admin/ban", "Ban", fields=BanFields, template=_TEMPLATE, level="ADMINISTRATOR")
UNBAN: Final = Form(
    "/admin/unban", "Lift a ban", fields=UnbanFields, template=_TEMPLATE, level="ADMINISTRATOR"
)
END: Final = Form(
    "/admin/end-session",
    "End a session",
    fields=SessionFields,
    template=_TEMPLATE,
    level="ADMINISTRATOR",
)


class AdministrationPages:
    """Shows them, and does what their forms say."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def administration(self, asked: Asked) -> Shown:
        """The record and what is in force."""
        parameters: AskedAdministration = asked.parameters
        ask = self._questions.ask
        until = parameters.until or parameters.as_of
        try:
            audit = await ask(asked, LIST_AUDIT, narrowed(parameters, ListAudit, until=until), Audit)
        except RequestRefused as refusal:
            if refusal.code != ProblemCode.NOT_FOUND:
                raise
            return Shown(NoRecord(str(refusal)), template="pool/no_record.html")
        view = AdministrationView(
            asked=parameters,
            audit=audit,
            alarms=sum(deed.alarm for deed in audit.deeds),
            bans=await ask(asked, LIST_BANS, ListBans(), Bans),
            sessions=await ask(asked, LIST_LOGINS, ListLogins(), Logins),
            workers=await ask(asked, LIST_WORKERS, ListWorkers(), Workers),
        )
        return Shown(view)

    async def ban(self, asked: Asked) -> Led:
        """Let somebody in no more."""
        fields: BanFields = asked.body
        change = BanChange(whom=fields.whom, reason=fields.reason, lifetime=fields.hours * 3600)
        await self._questions.ask(asked, CHANGE_BANS, ChangeBans(), Bans, change)
        return Led("/admin")

    async def unban(self, asked: Asked) -> Led:
        """Let somebody in again."""
        fields: UnbanFields = asked.body
        change = BanChange(whom=fields.whom, action="unban")
        await self._questions.ask(asked, CHANGE_BANS, ChangeBans(), Bans, change)
        return Led("/admin")

    async def end_session(self, asked: Asked) -> Led:
        """End a session."""
        fields: SessionFields = asked.body
        await self._questions.ask(asked, END_LOGIN, EndLogin(id=fields.session), Ended)
        return Led("/admin")

    async def services(self, asked: Asked) -> Shown:
        """Which services run where."""
        found = await self._questions.ask(asked, LIST_HOSTS, ListHosts(), Hosts)
        daemons = sum(len(host.daemons) for host in found.hosts)
        return Shown(ServicesView(hosts=found.hosts, daemons=daemons, troubles=troubles(found.hosts)))


def troubles(hosts: list[Host]) -> list[str]:
    """What is not as it should be, host by host."""
    said = [alert.summary for alert in of_hosts(hosts)]
    return said + [
        f"{host.name} runs {host.version}, and {host.new_version} is installed"
        for host in hosts
        if host.new_version
    ]
