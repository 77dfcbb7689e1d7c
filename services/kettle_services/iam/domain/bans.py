"""Bans: who is not let in, whatever else says that he is."""

from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Ban, Register, Session
from kettle_wire.events.iam import BanLifted, BanSet, Ended, IdentityEvent, SessionClosed

Changes = list[tuple[str, IdentityEvent]]


def banned(register: Register, event: BanSet) -> Changes:
    """
    Ban somebody, and end the sessions that there are of him; banned again in the same words is banned once.
    """
    known = register.find(Ban, f"ban/{event.whom}")
    if known is not None and (known.reason, known.until) == (event.reason, event.until):
        return []
    kind, _, name = event.whom.partition(":")
    sessions = [each for each in register.all(Session) if kind == "user" and each.subject == name]
    closed: Ended = "banned"
    return [
        (f"ban/{event.whom}", event),
        *(
            (
                f"session/{each.session}",
                SessionClosed(session=each.session, why=closed, by=event.by, at=event.at),
            )
            for each in sessions
        ),
    ]


def lifted(register: Register, whom: str, *, by: str, now: float) -> Changes:
    """Let somebody in again; raises Denied if he is not banned."""
    if register.find(Ban, f"ban/{whom}") is None:
        raise Denied(Code.BAN_UNKNOWN, f"{whom} is not banned; see who is: kettle ban", status=404)
    return [(f"ban/{whom}", BanLifted(whom=whom, by=by, at=now))]


def over(register: Register, *, now: float) -> Changes:
    """Bans that have ended by themselves."""
    return [
        (f"ban/{ban.whom}", BanLifted(whom=ban.whom, by="the time that was set", at=now))
        for ban in register.all(Ban)
        if ban.until and now >= ban.until
    ]


def require_welcome(register: Register, *whom: str, now: float) -> None:
    """Raise Denied for somebody who is banned under one of these names."""
    ban = register.ban_of(*whom, now=now)
    if ban is not None:
        because = f": {ban.reason}" if ban.reason else ""
        raise Denied(Code.USER_BANNED, f"{ban.whom.partition(':')[2]} is banned by {ban.by}{because}")
