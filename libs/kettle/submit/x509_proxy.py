"""
The user's proxy certificate, by which a job is known to grid services: where it lies on this side.

Nothing in it is looked at.  HTCondor also says in the ad whose it is and how long it is good (`x509userproxysubject`,
`x509UserProxyExpiration`, ...); to read these needs a library that takes longer to load than a submission takes.
"""

import os
from typing import Final

from kettle.submit.expressions import unquoted
from kettle.submit.lookup import Lookup, flag, is_settled
from kettle_wire.ads.types import Ad

_MAKE: Final = "make one (voms-proxy-init), or say where it is: x509userproxy = FILE"


def proxy(lookup: Lookup) -> Ad:
    """
    The file that is named; or with `use_x509userproxy = true` the one that grid programs of the submitter use.
    """
    wanted, given = flag(lookup, "use_x509userproxy", default=False), lookup.get("x509userproxy")
    name = "" if given is None else unquoted(given.text)
    if given is None and wanted:
        given = lookup.get("use_x509userproxy")
        name = lookup.environ.get("X509_USER_PROXY") or f"/tmp/x509up_u{os.getuid()}"  # noqa: S108 - as grid programs do
    if given is None:
        return {}
    path = lookup.iwd() / name
    if lookup.site.check_files and is_settled(path):
        why = lookup.disk.unreadable(path)
        if not why and os.path.isdir(path):  # noqa: PTH112 - pathlib's raises where we may not look
            why = "is a directory"
        if not why and not lookup.disk.size(path):
            why = "is empty"
        if why:
            given.refuse(f"the proxy file {path} {why}; {_MAKE}")
    return {"x509userproxy": str(path)}
