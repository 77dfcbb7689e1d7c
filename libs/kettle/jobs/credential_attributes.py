"""
The attributes of a job that say with which credential it was submitted, spelled as HTCondor spells them.

Pure.  The schedd makes them of what the credential says; no submission, edit, route or running job sets them.
"""

from typing import Final

from kettle_wire.ads.types import Ad
from kettle_wire.people import Shown

VO: Final = "x509UserProxyVOName"
"""The virtual organisation for which it was submitted."""
_ISSUER: Final = "AuthTokenIssuer"
_SUBJECT: Final = "AuthTokenSubject"
_ID: Final = "AuthTokenId"
_GROUPS: Final = "AuthTokenGroups"
_SCOPES: Final = "AuthTokenScopes"
CREDENTIAL: Final = frozenset(map(str.lower, (VO, _ISSUER, _SUBJECT, _ID, _GROUPS, _SCOPES)))
"""In lower case."""


def credential_attributes(shown: Shown) -> Ad:
    """What the ad says of a credential; several groups or scopes are one text, with commas."""
    said = {
        VO: shown.vo,
        _ISSUER: shown.issuer,
        _SUBJECT: shown.subject,
        _ID: shown.token,
        _GROUPS: ",".join(shown.groups),
        _SCOPES: ",".join(shown.scopes),
    }
    return {name: value for name, value in said.items() if value}
