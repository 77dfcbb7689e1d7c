"""
Tokens that somebody asks for and somebody else approves, as HTCondor has them.

A request has a number of seven digits, which is told to who approves it, and a secret of who made it, whose SHA-256 is recorded.
The token is made when it is collected, always the same one, of what the approval says and of the pool's key.
"""

from collections.abc import Collection, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from kettle.auth.mapping.levels import Level
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.iam.domain.join_tokens import proves
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import AutoApproval, Register, TokenRequest
from kettle_wire.events.iam import (
    AutoApprovalEnded,
    AutoApprovalSet,
    IdentityEvent,
    TokenRequestApproved,
    TokenRequestCollected,
    TokenRequested,
    TokenRequestEnded,
)

Changes = list[tuple[str, IdentityEvent]]
DAEMONS: Final = "condor"
"""Who the daemons of a pool are, in HTCondor's words."""
MOST_WAITING: Final = 1000
"""Requests of everybody."""
MOST_OF_ONE: Final = 20
"""Requests from one address, or of one person."""
LOST_ANSWER_S: Final = 60.0
"""For so long after it was collected the token is given again: the first answer may have been lost."""
BACK_S: Final = 60.0
"""A rule approves requests that came so long before it was made."""
ORDINARY: Final = Level.WRITE.implied()
"""The levels that somebody may put into a token who has no more than WRITE where he asks."""
_OF_DAEMONS: Final = frozenset({Level.ADVERTISE_MASTER, Level.ADVERTISE_STARTD, Level.ADVERTISE_SCHEDD})


def stream(request: str) -> str:
    """The stream of a request."""
    return f"tokenrequest/{request}"


def require_levels(levels: Sequence[str]) -> list[Level]:
    """The levels of these names; raises Denied for one that there is not, or that is in no token."""
    known = {level.value: level for level in Level if level is not Level.OWNER}
    for name in levels:
        if name not in known:
            raise Denied(
                Code.TOKENREQUEST_LEVEL,
                f"there is no level {name} for a token{did_you_mean(name, known)}",
                status=400,
            )
    return [known[name] for name in dict.fromkeys(levels)]


def require_ordinary(levels: Collection[str], *, whose: str) -> None:
    """Raise Denied for levels that take ADMINISTRATOR to be put into a token; none at all is all of them."""
    more = [level for level in levels if level not in ORDINARY]
    if levels and not more:
        return
    what = f"the level {more[0]}" if more else "no limit"
    raise Denied(
        Code.TOKENREQUEST_LEVEL,
        f"{whose} may have tokens with READ and WRITE, and one with {what} is given by an administrator",
    )


def requested(register: Register, event: TokenRequested) -> Changes:
    """Ask for a token; raises Denied if too many wait, or a number is taken."""
    waiting = [each for each in register.all(TokenRequest) if event.at < each.expires]
    own = [each for each in waiting if (each.requester, each.address) == (event.requester, event.address)]
    if len(waiting) >= MOST_WAITING or len(own) >= MOST_OF_ONE:
        raise Denied(
            Code.TOKENREQUEST_TOO_MANY,
            "too many requests for tokens wait already; have them approved, or wait until they are over",
            status=429,
            retry_after=60,
        )
    return [(stream(event.request), event)]


def rule_for(
    register: Register, request: TokenRequest, trust_domain: str, *, now: float
) -> AutoApproval | None:
    """
    The rule that approves a request: it is for the daemons of the pool, limited to their own ads, and from a network that somebody has
    named.
    """
    levels = set(request.levels)
    if request.identity != f"{DAEMONS}@{trust_domain}" or not levels or not levels <= _OF_DAEMONS:
        return None
    for rule in register.all(AutoApproval):
        if (
            rule.made - BACK_S <= request.made
            and now < rule.expires
            and _within(request.address, rule.netblock)
        ):
            return rule
    return None


def _within(address: str, netblock: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:  # it came over the bus
        return False
    return (getattr(found, "ipv4_mapped", None) or found) in ip_network(netblock, strict=False)


def waiting(register: Register, request: str, *, now: float) -> TokenRequest:
    """A request that nobody has approved yet; raises Denied."""
    found = register.find(TokenRequest, stream(request))
    if found is None or found.token or now >= found.expires:
        raise Denied(
            Code.TOKENREQUEST_UNKNOWN,
            f"no request {request} waits; see which do: condor_token_request_list",
            status=404,
        )
    return found


def approved(
    request: TokenRequest, *, token: str, key: str, lifetime: int, by: str, rule: str = "", now: float
) -> Changes:
    """Let the token of a request be collected."""
    event = TokenRequestApproved(
        request=request.request, token=token, key=key, lifetime=lifetime, by=by, rule=rule, at=now
    )
    return [(stream(request.request), event)]


def collectable(register: Register, request: str, secret: str, *, now: float) -> TokenRequest:
    """
    The request of who has the secret; raises Denied, in the same words for a wrong number and a wrong secret.
    """
    found = register.find(TokenRequest, stream(request))
    over = (
        found is None or now >= found.expires or (found.collected and now - found.collected > LOST_ANSWER_S)
    )
    if found is None or over or not proves(secret, found.hash):
        raise Denied(
            Code.TOKENREQUEST_UNKNOWN,
            "there is no such request, or it is over, or its secret is another; make a new one: condor_token_request",
            status=404,
        )
    return found


def collected(request: TokenRequest, *, address: str, now: float) -> Changes:
    """Note that a token was given; given again, it is noted once."""
    if request.collected:
        return []
    event = TokenRequestCollected(
        request=request.request, token=request.token, subject=request.identity, address=address, at=now
    )
    return [(stream(request.request), event)]


def auto_approval(netblock: str, *, lifetime: float, by: str, now: float) -> Changes:
    """Approve what daemons of a network ask for themselves; raises Denied for what is no network."""
    try:
        network = str(ip_network(netblock, strict=False))
    except ValueError as error:
        raise Denied(
            Code.REQUEST_MALFORMED, f"{netblock} is no network: write it as 192.0.2.0/24", status=400
        ) from error
    event = AutoApprovalSet(netblock=network, expires=now + lifetime, by=by, at=now)
    return [(f"autoapproval/{network}", event)]


def over(register: Register, *, now: float) -> Changes:
    """Requests that nobody approved or collected in time, those that were collected, and old rules."""
    requests: Changes = [
        (stream(each.request), TokenRequestEnded(request=each.request, at=now))
        for each in register.all(TokenRequest)
        if now >= each.expires or (each.collected and now - each.collected > LOST_ANSWER_S)
    ]
    rules: Changes = [
        (f"autoapproval/{each.netblock}", AutoApprovalEnded(netblock=each.netblock, at=now))
        for each in register.all(AutoApproval)
        if now >= each.expires
    ]
    return [*requests, *rules]
