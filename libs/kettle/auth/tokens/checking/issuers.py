"""Whose tokens are accepted, for whom and in which profiles."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import msgspec

from kettle.auth.tokens.verified import Profile, TokenCode, TokenError, quoted

Covers: TypeAlias = Literal["vo", "own"]
"""Which jobs `compute.*` scopes are about: all of the issuer's, as the WLCG profile says, or those of the same subject."""

PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts with which one may talk without TLS, for trials on one machine."""


class Issuer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An issuer whose tokens are accepted: one issuer speaks for one VO."""

    url: str
    """Exactly as it stands in the claim `iss`, with or without a slash at the end."""
    audiences: tuple[str, ...]
    """The names under which it knows us, as `condor://ce.example.org` or `ce.example.org:9619`: compared exactly."""
    profiles: tuple[Profile, ...] = PROFILES
    """In which profiles its tokens are accepted."""
    compute: Covers = "own"
    any_audience: bool = True
    """Whether tokens for any service are good: `ANY` of SciTokens, and the URL that WLCG has for it."""
    vo: str = ""
    """The name of its VO, for people; the issuer's URL if there is none."""

    def __post_init__(self) -> None:
        """Raises ValueError: an issuer that no token can come from."""
        _check_url(self.url)
        if not self.audiences or not all(self.audiences):
            raise ValueError(
                f"the issuer {self.url} needs an audience: the name by which its tokens call this pool"
            )
        if not self.profiles:
            raise ValueError(f"the issuer {self.url} needs a profile: one of {', '.join(PROFILES)}")

    @property
    def named_vo(self) -> str:
        """What its VO is called."""
        return self.vo or self.url


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise _no_url(url) from None
    if not host or not url.isascii() or any(each in url for each in " ,\t\r\n"):
        raise _no_url(url)
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"the URL of an issuer has no query, no fragment and no user: {quoted(url)}")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in LOOPBACK):
        raise ValueError(f"an issuer is asked over https, and {quoted(url)} is something else")


def _no_url(text: str) -> ValueError:
    return ValueError(f"an issuer is a URL such as https://issuer.example.org/vo, and {quoted(text)} is none")


class Issuers:
    """The table of them."""

    def __init__(self, issuers: Iterable[Issuer]) -> None:
        """Raises ValueError: an issuer is there twice."""
        table: dict[str, Issuer] = {}
        for issuer in issuers:
            if issuer.url in table:
                raise ValueError(f"the issuer {issuer.url} is there twice: one issuer is one VO")
            table[issuer.url] = issuer
        self.by_url: Mapping[str, Issuer] = table

    def of(self, url: object) -> Issuer:
        """The one of a token; raises TokenError."""
        if not isinstance(url, str):
            raise TokenError(
                TokenCode.MALFORMED, "the token does not say who issued it: its claim iss is missing"
            )
        issuer = self.by_url.get(url)
        if issuer is None:
            near = difflib.get_close_matches(url[:200], list(self.by_url), n=1, cutoff=0.6)
            hint = f"; {near[0]} is, and the URL must be the same to the letter" if near else ""
            raise TokenError(TokenCode.ISSUER_UNKNOWN, f"the issuer {quoted(url)} is not trusted here{hint}")
        return issuer
