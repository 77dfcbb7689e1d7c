"""What the site says of who is who and who may do what, as it is in force now."""

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from kettle.auth.mapping.findings import Finding, refusals
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.policy import AccessPolicy, Decision, Mapped
from kettle.auth.mapping.principals import Principal
from kettle.runtime.access_files import FilesInForce, named
from kettle.runtime.authorization import Authorization
from kettle.runtime.authorizer import SettingPlaces, access_lists
from kettle.runtime.settings_problems import SettingsError

_log: Final = logging.getLogger(__name__)


class PolicyInForce:
    """The table `[authorization]` with the files that it names."""

    def __init__(
        self,
        role: str,
        said: Authorization,
        settings: Path | None,
        administrators: Callable[[], Collection[str]] = tuple,
        *,
        places: SettingPlaces | None = None,
    ) -> None:
        """
        `role`: whose lists count; `settings`: the file of settings, at whose directory relative names begin; `places`: where
        in it the lists stand, if they are to be named.

        Raises:
            SettingsError: a file is refused; later, the former one stays in force.
        """
        maps, rules = named(said, settings)
        self._files = FilesInForce(maps, rules)
        self.files: Final = (*maps, *([rules] if rules else []))
        """Those that are read."""
        self._seen = self._state()
        self._role = role
        self._said = said
        self._places = places
        self._administrators = administrators
        if refused := refusals(self._read()):
            raise SettingsError(str(refused[0]))
        self._policy = self._made()

    @property
    def domain(self) -> str:
        """The domain of the people of this pool."""
        return self._said.own_domain

    @property
    def gives_vos(self) -> bool:
        """Whether a rule gives anybody a VO."""
        return self._policy.gives_vos

    def identify(self, principal: Principal, now: float) -> Mapped:
        """Who it is."""
        return self._policy.identify(principal, now)

    def decide(self, principal: Principal, who: Mapped, level: Level) -> Decision:
        """Whether he has a level."""
        return self._policy.decide_for(principal, who, level, subsystem=self._role)

    def changed(self) -> bool:
        """
        Whether the files say something else than when this was asked last; of files that cannot be used the former ones stay
        in force.
        """
        if (state := self._state()) == self._seen:
            return False
        self._seen = state
        before = self._policy
        self._read()
        self._policy = self._made()
        return self._policy != before

    def _read(self) -> Sequence[Finding]:
        findings = self._files.read()
        for finding in findings:
            _log.log(logging.WARNING if finding.warning else logging.ERROR, "%s", finding)
        return findings

    def _state(self) -> list[tuple[int, int] | None]:
        return [_state(path) for path in self.files]

    def _made(self) -> AccessPolicy:
        files = self._files.current
        return AccessPolicy(
            domain=self.domain,
            rules=files.rules.rules,
            maps=files.maps,
            accounting_groups=files.rules.accounting_groups,
            bans=files.rules.bans,
            lists=access_lists(self._said, self._role, self._administrators(), self._places),
        )


def _state(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size
