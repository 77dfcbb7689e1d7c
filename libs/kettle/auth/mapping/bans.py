"""Who is shut out, why, and until when."""

from collections.abc import Sequence

import msgspec

from kettle.auth.mapping.findings import Place
from kettle.auth.mapping.principals import Principal, in_group


class Ban(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Shuts out all to whom everything applies that it names."""

    owner: str = ""
    """The name in the pool: `ada` in any domain, or `ada@example.org`."""
    issuer: str = ""
    subject: str = ""
    token: str = ""
    """The id of one token (`jti`)."""
    group: str = ""
    """As in rules: `/cms/x`, or all below with `/cms/*`."""
    reason: str = ""
    until: float = 0.0
    """Seconds since the epoch from which it no longer holds; 0: it does not end."""
    place: Place = Place("")

    @property
    def problem(self) -> str:
        """Why it cannot be used, as a sentence; empty if it can."""
        if not (self.owner or self.issuer or self.subject or self.token or self.group):
            return "it names nobody: give owner, issuer, subject, token or group"
        if self.subject and not self.issuer:
            return "a subject is somebody only with an issuer: give the issuer too"
        return ""

    def __str__(self) -> str:
        names = {
            "owner": self.owner, "issuer": self.issuer, "subject": self.subject, "token": self.token, "group": self.group,
        }  # fmt: skip
        return "ban " + ", ".join(f"{name} = {text}" for name, text in names.items() if text)

    def holds(self, principal: Principal, owner: str, domain: str, groups: Sequence[str], now: float) -> bool:
        """Whether it shuts somebody out at a time; the groups are all that the credential names."""
        if self.until and now >= self.until:
            return False
        user, at, own = self.owner.partition("@")
        return not (
            (self.owner and (user.lower() != owner.lower() or (at and own.lower() != domain.lower())))
            or (self.issuer and self.issuer != principal.issuer)
            or (self.subject and self.subject != principal.subject)
            or (self.token and self.token != principal.id)
            or (self.group and not in_group(groups, self.group))
        )
