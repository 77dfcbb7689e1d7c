"""What the record says, in a sentence for each entry, and which entries somebody asked for."""

from typing import Final

import msgspec

from kettle_wire.commands.iam import AuditEntry
from kettle_wire.events import tag_of
from kettle_wire.events.iam import (
    AccessDenied,
    AdministratorActed,
    AutoApprovalEnded,
    AutoApprovalSet,
    BanLifted,
    BanSet,
    ClientRegistered,
    ClientRemoved,
    CredentialRemoved,
    CredentialStored,
    IdentityEvent,
    IssuerAdded,
    IssuerRemoved,
    JobTokensOver,
    JoinTokenCreated,
    JoinTokenExpired,
    JoinTokenMisused,
    JoinTokenRevoked,
    JoinTokenUsed,
    RulesLoaded,
    SessionClosed,
    SessionOpened,
    SessionRenewed,
    TokenExpired,
    TokenIssued,
    TokenRequestApproved,
    TokenRequestCollected,
    TokenRequested,
    TokenRequestEnded,
    TokenRevoked,
    ValueSet,
    ValuesRemoved,
    WorkerJoined,
    WorkerLeft,
    WorkerRenewed,
)


class Said(msgspec.Struct, frozen=True):
    """An entry in words."""

    who: str
    whom: str
    sentence: str
    address: str = ""
    alarm: bool = False


_ALARMS: Final = frozenset({"reused"})
_OWN_AFFAIRS: Final = frozenset({"value.set", "values.removed"})


def said(event: IdentityEvent) -> Said:
    """Who did what to whom."""
    match event:
        case IssuerAdded() | IssuerRemoved() | RulesLoaded() | BanSet() | BanLifted():
            return _of_rules(event)
        case (
            JoinTokenCreated()
            | JoinTokenUsed()
            | JoinTokenExpired()
            | JoinTokenRevoked()
            | JoinTokenMisused()
        ):
            return _of_join_tokens(event)
        case WorkerJoined() | WorkerRenewed() | WorkerLeft() | ClientRegistered() | ClientRemoved():
            return _of_members(event)
        case SessionOpened() | SessionRenewed() | SessionClosed():
            return _of_sessions(event)
        case TokenIssued() | TokenRevoked() | TokenExpired():
            return _of_access_tokens(event)
        case CredentialStored() | CredentialRemoved() | JobTokensOver() | ValueSet() | ValuesRemoved():
            return _of_programs(event)
        case (
            TokenRequested()
            | TokenRequestApproved()
            | TokenRequestCollected()
            | TokenRequestEnded()
            | AutoApprovalSet()
            | AutoApprovalEnded()
        ):
            return _of_requests(event)
        case AdministratorActed():
            return Said(event.who, event.where, f"{event.action} at {event.where}: {event.sentence}")
        case AccessDenied():
            sentence = f"{event.action}: {event.message}{_more(event.more)}"
            return Said(event.who, "", sentence, event.address, alarm=True)


def _of_access_tokens(event: TokenIssued | TokenRevoked | TokenExpired) -> Said:
    match event:
        case TokenIssued(subject=subject):
            about = f"{event.token} for {subject} ({event.grant}): {_scopes(event.scopes)}"
            return Said(event.client or subject, subject, f"got the access token {about}", event.address)
        case TokenRevoked(subject=subject):
            return Said(event.by, subject, f"withdrew the access token {event.token} of {subject}")
        case TokenExpired():
            return Said("", "", f"the withdrawn access token {event.token} has ended")


def _of_rules(event: IssuerAdded | IssuerRemoved | RulesLoaded | BanSet | BanLifted) -> Said:
    match event:
        case IssuerAdded():
            return Said(event.by, event.issuer, f"accepts the tokens of {event.issuer}")
        case IssuerRemoved():
            return Said(event.by, event.issuer, f"accepts the tokens of {event.issuer} no more")
        case RulesLoaded():
            return Said(event.by, event.path, f"loaded {event.lines} lines of rules from {event.path}")
        case BanSet():
            because = f": {event.reason}" if event.reason else ""
            return Said(event.by, event.whom, f"banned {event.whom}{because}")
        case BanLifted():
            return Said(event.by, event.whom, f"lifted the ban of {event.whom}")


def _of_join_tokens(
    event: JoinTokenCreated | JoinTokenUsed | JoinTokenExpired | JoinTokenRevoked | JoinTokenMisused,
) -> Said:
    match event:
        case JoinTokenCreated():
            owner = f" of {event.owner}" if event.owner else ""
            uses = f"{event.max_uses} {event.joins}{'s' * (event.max_uses != 1)}{owner}"
            return Said(event.by, event.token, f"made the join token {event.token} for {uses}")
        case JoinTokenUsed():
            return Said(event.name, event.token, f"joined with the join token {event.token}", event.address)
        case JoinTokenExpired():
            return Said("", event.token, f"the join token {event.token} is over")
        case JoinTokenRevoked():
            return Said(event.by, event.token, f"withdrew the join token {event.token}")
        case JoinTokenMisused():
            sentence = f"tried to join as {event.name} with the join token {event.token}: {event.why}{_more(event.more)}"
            return Said(event.name, event.token, sentence, event.address, alarm=True)


def _of_members(
    event: WorkerJoined | WorkerRenewed | WorkerLeft | ClientRegistered | ClientRemoved,
) -> Said:
    match event:
        case WorkerJoined():
            owner = f" for {event.owner}" if event.owner else ""
            return Said(
                event.worker, event.worker, f"is a {event.joins} of the pool{owner}, with the key {event.key}"
            )
        case WorkerRenewed():
            return Said(event.worker, event.worker, f"renewed the credential of {event.worker}")
        case WorkerLeft():
            return Said(event.by, event.worker, f"had the credential of {event.worker} withdrawn")
        case ClientRegistered():
            return Said(
                event.by,
                event.client,
                f"registered the client {event.client} for {event.owner}: {_scopes(event.scopes)}",
            )
        case ClientRemoved():
            return Said(event.by, event.client, f"removed the client {event.client}")


def _of_requests(
    event: TokenRequested
    | TokenRequestApproved
    | TokenRequestCollected
    | TokenRequestEnded
    | AutoApprovalSet
    | AutoApprovalEnded,
) -> Said:
    match event:
        case TokenRequested():
            limits = f" limited to {' '.join(event.levels)}" if event.levels else " without limits"
            return Said(
                event.requester or event.client,
                event.identity,
                f"asks for a token of {event.identity}{limits} (request {event.request} of {event.client})",
                event.address,
            )
        case TokenRequestApproved():
            by_rule = f" by the rule for {event.rule}" if event.rule else ""
            return Said(
                event.by,
                event.request,
                f"approved the request {event.request} for the token {event.token}{by_rule}",
            )
        case TokenRequestCollected():
            return Said(
                event.subject,
                event.subject,
                f"the token {event.token} of {event.subject} was collected (request {event.request})",
                event.address,
            )
        case TokenRequestEnded():
            return Said("", event.request, f"the request {event.request} for a token is over")
        case AutoApprovalSet():
            return Said(
                event.by, event.netblock, f"approves what daemons from {event.netblock} ask for themselves"
            )
        case AutoApprovalEnded():
            return Said(
                "",
                event.netblock,
                f"requests of daemons from {event.netblock} are not approved by a rule any more",
            )


def _of_sessions(event: SessionOpened | SessionRenewed | SessionClosed) -> Said:
    match event:
        case SessionOpened():
            return Said(
                event.by,
                event.subject,
                f"opened the session {event.session} for {event.subject}: {_scopes(event.scopes)}",
            )
        case SessionRenewed():
            return Said("", event.session, f"renewed the session {event.session}", event.address)
        case SessionClosed():
            return Said(
                event.by,
                event.session,
                f"ended the session {event.session}: {event.why}",
                alarm=event.why in _ALARMS,
            )


def _scopes(scopes: list[str]) -> str:
    return " ".join(scopes) or "no scopes"


def _more(more: int) -> str:
    return f" (and {more} more before)" if more else ""


def act(event: IdentityEvent, *, at: float, frame: int) -> AuditEntry:
    """An entry as it is shown."""
    words = said(event)
    return AuditEntry(
        at=at,
        what=tag_of(event).partition("/")[0],
        who=words.who,
        whom=words.whom,
        sentence=words.sentence,
        address=words.address,
        alarm=words.alarm,
        frame=frame,
    )


def matches(act: AuditEntry, *, who: str, what: str) -> bool:
    """
    Whether an entry is about somebody, and of a type that begins so; what people do to values of their own is said to who asks for it.
    """
    names = {act.who, act.whom, act.whom.partition(":")[2]}
    return (not who or who in names) and (act.what.startswith(what) if what else act.what not in _OWN_AFFAIRS)


def _of_programs(
    event: CredentialStored | CredentialRemoved | JobTokensOver | ValueSet | ValuesRemoved,
) -> Said:
    match event:
        case JobTokensOver():
            return Said("", "", f"the attempt {event.session} gets no tokens any more")
        case ValueSet():
            return Said(event.owner, event.owner, f"set the value of {event.key}")
        case ValuesRemoved():
            return Said(event.owner, event.owner, f"removed the values of {', '.join(event.keys)}")
        case CredentialStored() | CredentialRemoved():
            what = "stored" if isinstance(event, CredentialStored) else "removed"
            name = f"{event.service}, {event.handle}" if event.handle else event.service
            return Said(event.by, event.owner, f"{what} the credential {name} of {event.owner}")
