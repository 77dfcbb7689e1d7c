"""
Tokens that jobs have in their sandbox: of which services, and what each is to say.

    use_oauth_services = kettle, box
    kettle_oauth_permissions = storage.read:/data
    box_oauth_permissions_mine = files.read
"""

from kettle.jobs.needed_tokens import HANDLE, MOST, NAME, PERMISSIONS, RESOURCE, SERVICES, words
from kettle.submit.commands import OAUTH
from kettle.submit.expressions import unquoted
from kettle.submit.lookup import Lookup, Setting
from kettle_wire.ads.types import Ad


def job_tokens(lookup: Lookup) -> Ad:
    """The services, with their handles; and the scopes and audiences of each token, where they are said."""
    given = lookup.get("use_oauth_services")
    if given is None:
        return {}
    found: dict[str, str] = {}
    ad: Ad = {}
    for service in words(unquoted(given.text)):
        _check(given, service, "a service")
        handles: dict[str, None] = {}
        for what, attribute in (("permissions", PERMISSIONS), ("resource", RESOURCE)):
            for handle, setting in _said(lookup, service, what):
                handles.setdefault(handle)
                if handle:
                    _check(setting, handle, "a handle")
                if said := words(unquoted(setting.text)):
                    ad[f"{attribute}{_name(service, handle)}"] = " ".join(said)
        for handle in handles or {"": None}:
            found[_name(service, handle)] = f"{service}{HANDLE}{handle}" if handle else service
    if len(found) > MOST:
        given.refuse(f"a job has at most {MOST} tokens, not {len(found)}")
    return {SERVICES: ",".join(found.values()), **ad}


def _said(lookup: Lookup, service: str, what: str) -> list[tuple[str, Setting]]:
    found: list[tuple[str, Setting]] = []
    for key, assignment in lookup.given.items():
        match = OAUTH.fullmatch(key)
        if match is not None and match["service"] == service.lower() and match["what"] == what:
            handle = assignment.name[len(key) - len(match["handle"]) :] if match["handle"] else ""
            found.append((handle, lookup.expanded(assignment)))
    return found


def _name(service: str, handle: str) -> str:
    return f"{service}_{handle}" if handle else service


def _check(setting: Setting, name: str, what: str) -> None:
    if not NAME.fullmatch(name):
        setting.refuse(f"'{name}' is no name of {what}: write letters, digits and _")
