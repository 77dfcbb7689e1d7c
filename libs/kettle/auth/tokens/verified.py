"""A token that was verified, and why one is refused."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, TypeAlias

import msgspec

Profile: TypeAlias = Literal["scitokens", "wlcg", "at+jwt", "plain"]
"""What a token claims to be: SciTokens 2.0, WLCG 1.x, an access token of RFC 9068, or any other JWT."""

JOB_CLAIM: Final = "kettle_session"
"""The claim of tokens that a pool gives to running jobs: it names the attempt."""


class TokenCode(StrEnum):
    """Why a token is refused; programs may rely on these."""

    MALFORMED = "token.malformed"
    """It is no JWT, or a claim is missing or has another form than its profile says."""
    SIZE = "token.size"
    """It is longer than any token is."""
    CRITICAL = "token.critical"
    """Its header demands an extension that nobody here understands (`crit`)."""
    ALG = "token.alg"
    """It is signed in a way that is not accepted, or not the way that its key is for."""
    ISSUER_UNKNOWN = "token.issuer_unknown"
    """Nobody here has said that its issuer is to be trusted."""
    KEY_UNKNOWN = "token.key_unknown"
    """Its issuer does not publish the key that it names."""
    KEYS_UNAVAILABLE = "token.keys_unavailable"
    """Its issuer does not answer, and no keys of it are known; the token may be good."""
    SIGNATURE = "token.signature"
    """The signature does not fit."""
    PROFILE = "token.profile"
    """It has a profile, or a version of one, that is not accepted of this issuer."""
    AUDIENCE = "token.audience"
    """It was made for somebody else."""
    EXPIRED = "token.expired"
    """Its time is over."""
    NOT_YET_VALID = "token.not_yet_valid"
    """Its time has not come, or it was made in the future."""
    SCOPE = "token.scope"
    """A scope has a form that the profile forbids, so the whole token is refused."""
    NO_RIGHTS = "token.no_rights"
    """It is valid, and gives no right that is needed."""


class TokenError(Exception):
    """A token is refused; the text is one sentence, and never has the token in it."""

    def __init__(self, code: TokenCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class VerifiedToken(msgspec.Struct, frozen=True):
    """A token whose signature, time, issuer, audience and form are good."""

    issuer: str
    subject: str
    """Empty only for a SciToken that names nobody: it speaks for its issuer."""
    audience: tuple[str, ...]
    profile: Profile
    scopes: tuple[str, ...]
    """As the token spells them."""
    groups: tuple[str, ...]
    """As the token spells them; none if it has any capability, because the profile says so."""
    expires: int
    """Seconds since the epoch."""
    issued: int
    """Seconds since the epoch."""
    id: str
    """The claim `jti`; empty if there is none."""
    claims: Mapping[str, object]
    """All of them, decoded."""


_MOST_QUOTED: Final = 80


def quoted(value: object) -> str:
    """
    What a stranger wrote, for a sentence: cut, and with nothing in it that a terminal or a log would obey.
    """
    text = value if isinstance(value, str) else type(value).__name__
    cut = text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}..."
    return ascii(cut)
