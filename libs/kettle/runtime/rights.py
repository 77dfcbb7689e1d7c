"""What a service answers to people who ask what they may do there."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import Learn, RefusedError, Served
from kettle.runtime.authorizer import Authorizer, Verdict, level_of
from kettle.terminal.nearest_names import did_you_mean
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.rights import RIGHTS_AT, QueryRights, RightAt, Rights
from kettle_wire.endpoint import Caller
from kettle_wire.identity import Identity

_OF_PEOPLE: Final = (Level.READ, Level.WRITE, Level.ADMINISTRATOR)
_COMMANDERS: Final = frozenset({Caller.USER, Caller.ADMINISTRATOR})
_OPEN: Final = (
    "[authorization] has no allow list for READ and WRITE, so who has a credential of the pool has both"
)


def answer_about_rights(
    authorizer: Authorizer, learn: Learn | None, role: str, served: Sequence[Served[Any, Any]]
) -> list[Served[Any, Any]]:
    """
    The answer to `query_rights` of a service that people command; none for another.  `learn` brings what is known of somebody
    up to date.
    """
    endpoint = RIGHTS_AT.get(role)
    if endpoint is None or all(each.endpoint.callers.isdisjoint(_COMMANDERS) for each in served):
        return []
    return [Served(endpoint, _RightsAnswer(authorizer, learn, role, served))]


class _RightsAnswer:
    """Answers for one service."""

    def __init__(
        self, authorizer: Authorizer, learn: Learn | None, role: str, served: Sequence[Served[Any, Any]]
    ) -> None:
        self._authorizer = authorizer
        self._learn = learn
        self._role = role
        self._served = {
            each.endpoint.verb: each for each in served if not each.endpoint.callers.isdisjoint(_COMMANDERS)
        }

    async def __call__(self, request: QueryRights, caller: Identity) -> Rights:
        """Decide as for a command; a word that is neither a level nor a command here is refused."""
        if self._learn is not None:
            await self._learn(caller.name, refused=True)
        levels = [self._level(word) for word in request.levels]
        if not (request.levels or request.commands):
            levels = list(_OF_PEOPLE)
        commands = [self._command(word) for word in request.commands]
        administrators = self._administrators()
        asked = [(level, "", administrators) for level in levels]
        asked += [(level_of(each.endpoint), each.endpoint.verb, each.administrators()) for each in commands]
        decisions = [
            (self._authorizer.decide(level, caller, names), command) for level, command, names in asked
        ]
        return Rights(
            identity=decisions[0][0].name,
            service=self._role,
            rights=[_shown(decision, command) for decision, command in decisions],
        )

    def _administrators(self) -> Collection[str] | None:
        """None: no command here is for administrators."""
        theirs = [each for each in self._served.values() if Caller.ADMINISTRATOR in each.endpoint.callers]
        return {name for each in theirs for name in each.administrators()} if theirs else None

    def _level(self, word: str) -> Level:
        found = Level.__members__.get(word.upper())
        if found is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"there is no level {word}{did_you_mean(word.upper(), Level.__members__)}",
            )
        return found

    def _command(self, word: str) -> Served[Any, Any]:
        found = self._served.get(word)
        if found is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"people can send no command {self._role}.{word}{did_you_mean(word, self._served)}",
            )
        return found


def _shown(decision: Verdict, command: str) -> RightAt:
    rule = str(decision.because) if decision.because else _OPEN if decision.allowed else "no rule gives it"
    return RightAt(
        level=decision.level,
        command=command,
        allowed=decision.allowed,
        rule=rule,
        missing=decision.missing,
    )
