"""What must be true of iam's record when everything is over."""

from collections import Counter
from collections.abc import Iterable, Sequence

from kettle.storage import Database, PgLog
from kettle.testing.chaos.evidence import Evidence
from kettle.testing.chaos.identity_workload import IdentityPromises
from kettle.testing.chaos.invariants import InvariantResult, verdict
from kettle_wire import events
from kettle_wire.events import (
    AdministratorActed,
    BanSet,
    Event,
    JoinTokenCreated,
    JoinTokenUsed,
    SessionOpened,
    SessionRenewed,
    TokenIssued,
    WorkerJoined,
)

_PATIENCE_S = 30.0
_SHARD = "identity"


async def read(dsn: str) -> list[Event]:
    """Everything that iam has recorded."""
    async with Database.connect(dsn, patience=_PATIENCE_S) as database:
        frames = [frame async for frame in PgLog(database).read(_SHARD)]
    return [events.decode(entry.data) for frame in frames for entry in frame.entries]


def on_record(promises: IdentityPromises, past: Sequence[Event]) -> list[InvariantResult]:
    """The laws about what iam has promised."""
    return [joins(promises, past), grants(promises, past), logins(promises), deeds(promises, past)]


def joins(promises: IdentityPromises, past: Sequence[Event]) -> InvariantResult:
    """A token admits as many machines as it says, each once, and who was let in is recorded."""
    used: dict[str, Counter[tuple[str, str]]] = {}
    for event in past:
        if isinstance(event, JoinTokenUsed):
            used.setdefault(event.token, Counter())[event.name, event.key] += 1
    most = {each.token: each.max_uses for each in past if isinstance(each, JoinTokenCreated)}
    keys = {(each.worker, each.key) for each in past if isinstance(each, WorkerJoined)}
    problems = [
        f"join token {token} has {most.get(token, 0)} uses and was used by {sorted(each)}"
        for token, each in used.items()
        if each.total() > most.get(token, 0)
    ]
    for made in promises.join_tokens:
        if most.get(made.token) != made.max_uses:
            problems.append(f"join token {made.token} was given and is not recorded")
        problems += [
            f"{machine} was let in by {made.token} and is not recorded"
            for machine in made.machines.items()
            if not used.get(made.token, Counter())[machine] or machine not in keys
        ]
    return verdict("a join token lets in as many machines as it says", len(promises.join_tokens), problems)


def grants(promises: IdentityPromises, past: Sequence[Event]) -> InvariantResult:
    """What was answered is recorded: access tokens, sessions, each renewal, bans once."""
    issued = {each.token for each in past if isinstance(each, TokenIssued)}
    opened = {each.session for each in past if isinstance(each, SessionOpened)}
    renewed = Counter(each.session for each in past if isinstance(each, SessionRenewed))
    banned = Counter(each.whom for each in past if isinstance(each, BanSet))
    problems = [
        f"access token {each} is not recorded" for each in promises.access_tokens if each not in issued
    ]
    problems += [f"session {each} is not recorded" for each in promises.renewals if each not in opened]
    problems += [
        f"session {session} was renewed {times} times and has {renewed[session]} renewals on record"
        for session, times in promises.renewals.items()
        if renewed[session] < times
    ]
    problems += [
        f"the ban of {each} is recorded {banned[each]} times" for each in promises.bans if banned[each] != 1
    ]
    examined = len(promises.access_tokens) + sum(promises.renewals.values()) + len(promises.bans)
    return verdict("what iam has granted is recorded", examined, problems)


def logins(promises: IdentityPromises) -> InvariantResult:
    """Who comes with a token is who it says, and nobody once that is withdrawn."""
    return verdict("who comes with a token is who it says", promises.logins, promises.mistaken)


def tokens_of_jobs(evidence: Evidence) -> InvariantResult:
    """A job that wants a token does not begin without it, whatever becomes of iam meanwhile."""
    problems = [f"{name} began without its token" for name in evidence.without_token()]
    return verdict("jobs have the tokens that they want", evidence.with_token().total(), problems)


def deeds(promises: IdentityPromises, past: Sequence[Event]) -> InvariantResult:
    """What administrators had done elsewhere is in the record once, and nothing that they did not ask for."""
    acted = [each for each in past if isinstance(each, AdministratorActed) and "setting=" in each.sentence]
    told = Counter(_name(each.sentence) for each in acted)
    problems = [
        f"{name} was answered and is recorded {told[name]} times"
        for name, answered in promises.deeds.items()
        if answered and told[name] != 1
    ]
    problems += [
        f"{name} is recorded {times} times"
        for name, times in told.items()
        if times > 1 or name not in promises.deeds
    ]
    return verdict("the record of deeds is complete", len(promises.deeds), _once(problems))


def _name(sentence: str) -> str:
    return sentence.partition('name="')[2].partition('"')[0]


def _once(problems: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(problems))
