"""
Which tokens a job wants in its sandbox, as its ad says it (`use_oauth_services` and its companions in the description).

    OAuthServicesNeeded      "kettle,box*mine": services, each perhaps with a handle behind `*`
    OAuthPermissions_<name>  scopes of the token `<name>`, which is `service` or `service_handle`
    OAuthResource_<name>     for whom it is to be
"""

import re
from collections.abc import Mapping
from typing import Final

from kettle.jobs.url_scopes import WORD, url_scopes
from kettle_wire.job_tokens import NeededToken

SERVICES: Final = "OAuthServicesNeeded"
PERMISSIONS: Final = "OAuthPermissions_"
RESOURCE: Final = "OAuthResource_"
HANDLE: Final = "*"
DIRECTORY: Final = ".condor_creds"
"""Where their files are in the sandbox."""
OURS: Final = ("kettle", "scitokens")
"""Services whose tokens the pool signs itself: in the profile of WLCG, and as SciTokens."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,63}")
"""What services and handles may be called: their names become those of files."""
MOST: Final = 32
"""Tokens of one job."""
_APART: Final = re.compile(r"[\s,]+")


def wants_tokens(ad: Mapping[str, object]) -> bool:
    """Whether it wants any."""
    return bool(ad.get(SERVICES))


def needed_tokens(ad: Mapping[str, object]) -> list[NeededToken]:
    """All of them; what is no name of a service is left out, also if it was written into the ad directly."""
    found: dict[str, NeededToken] = {}
    for word in words(ad.get(SERVICES)):
        service, _, handle = word.partition(HANDLE)
        if not NAME.fullmatch(service) or (handle and not NAME.fullmatch(handle)):
            continue
        name = f"{service}_{handle}" if handle else service
        found[name] = NeededToken(
            service=service,
            handle=handle,
            scopes=_scopes(ad, words(ad.get(f"{PERMISSIONS}{name}"))),
            audiences=words(ad.get(f"{RESOURCE}{name}")),
        )
    return list(found.values())[:MOST]


def _scopes(ad: Mapping[str, object], said: list[str]) -> list[str]:
    """What is said, with the scopes of the job's URLs in the place of the word for them."""
    if WORD not in said:
        return said
    others = [scope for scope in said if scope != WORD]
    # Without any the administrator's whole list would be meant: a job without such URLs needs no right at all.
    return list(dict.fromkeys([*others, *url_scopes(ad)])) or [WORD]


def file_of(name: str) -> str:
    """How the file of a token is called."""
    return f"{name}.use"


def bearer(needed: list[NeededToken]) -> str:
    """
    The token that programs are to find by `BEARER_TOKEN_FILE`: the first of the pool's own, else the first one.
    """
    ours = [each.name for each in needed if each.service in OURS]
    return next(iter([*ours, *(each.name for each in needed)]), "")


def words(value: object) -> list[str]:
    """What is listed in a text, with blanks or commas between; of anything else nothing."""
    return [word for word in _APART.split(value) if word] if isinstance(value, str) else []
