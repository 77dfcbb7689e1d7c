"""
The token with which a submitter comes, where a description names its file: as with HTCondor the ad says where it lies, and that is all.

Nothing of it is sent with a job: what a job shows is a token of its own (`use_oauth_services`).
"""

from typing import Final

from kettle.submit.expressions import unquoted
from kettle.submit.lookup import Lookup, flag, is_settled
from kettle_wire.ads.types import Ad

_OF_THE_SHELL: Final = "BEARER_TOKEN_FILE"
_AUTO: Final = "auto"


def token_file(lookup: Lookup) -> Ad:
    """
    The file that `scitokens_file` names; with `use_scitokens` else the one of the shell, which has to be there unless it is `auto`.
    """
    said = lookup.get("use_scitokens")
    is_auto = said is not None and unquoted(said.text).strip().lower() == _AUTO
    wanted = not is_auto and flag(lookup, "use_scitokens", default=False)
    given = lookup.get("scitokens_file")
    if said is not None and not wanted and not is_auto:
        return {}
    name = unquoted(given.text) if given is not None else ""
    if given is None and said is not None:
        given, name = said, lookup.environ.get(_OF_THE_SHELL, "")
        if not name and is_auto:
            return {}
        if not name:
            given.refuse(f"which token? Say where it is: scitokens_file = FILE, or set {_OF_THE_SHELL}")
    if given is None:
        return {}
    path = lookup.iwd() / name
    if lookup.site.check_files and is_settled(path) and (why := lookup.disk.unreadable(path)):
        given.refuse(f"the token file {path} {why}")
    return {"ScitokensFile": str(path)}
