"""
Services that a job publishes, and with whom they are shared.

    services = dask:8786/tcp, dashboard:8787/http
    services_shared_with = alice, group:atlas
"""

from kettle.published import sharing
from kettle.published.services import ATTRIBUTE, ServiceError, parse_services, services_text
from kettle.submit.expressions import unquoted
from kettle.submit.lookup import Lookup
from kettle_wire.ads.types import Ad


def published_services(lookup: Lookup) -> Ad:
    """Both lists as attributes, each written in one way."""
    ad: Ad = {}
    given = lookup.get("services")
    if given is not None:
        try:
            ad[ATTRIBUTE] = services_text(parse_services(unquoted(given.text)))
        except ServiceError as error:
            given.refuse(str(error))
    shared = lookup.get("services_shared_with")
    if shared is not None:
        try:
            ad[sharing.ATTRIBUTE] = sharing.sharing_text(sharing.parse_sharing(unquoted(shared.text)))
        except ServiceError as error:
            shared.refuse(str(error))
    return ad
