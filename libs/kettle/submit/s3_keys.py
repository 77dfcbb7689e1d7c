"""Keys for objects in S3: the job says in which files they are, and only the submit side ever reads them."""

from typing import Final

from kettle.submit.expressions import unquoted
from kettle.submit.lookup import Lookup, readable
from kettle.transfer.s3_signatures import ACCESS_KEY, ENDPOINT, REGION, SECRET_KEY, place
from kettle_wire.ads.types import Ad

_FILES: Final = {"aws_access_key_id_file": ACCESS_KEY, "aws_secret_access_key_file": SECRET_KEY}


def keys(lookup: Lookup, *, needed: bool) -> Ad:
    """
    Where the keys are, and whose service it is; `needed`: the job has URLs that mean nothing without them.
    """
    ad: Ad = {}
    for command, attribute in _FILES.items():
        given = lookup.get(command)
        if given is not None:
            name = unquoted(given.text)
            readable(lookup, given, name, what=command)
            ad[attribute] = str(lookup.iwd() / name)
        elif needed:
            lookup.refuse(f"s3:// and gs:// URLs need {command} = FILE, a file that holds the key")
    if region := lookup.get("aws_region"):
        ad[REGION] = unquoted(region.text)
    if endpoint := lookup.get("s3_endpoint"):
        try:
            place("s3://bucket/object", endpoint=unquoted(endpoint.text))
        except ValueError as error:
            endpoint.refuse(f"s3_endpoint: {error}")
        ad[ENDPOINT] = unquoted(endpoint.text)
    return ad
