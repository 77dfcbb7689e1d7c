"""The services of a job, as its page links to them."""

from kettle.published.services import ATTRIBUTE, ServiceError, parse_services
from kettle_wire.ads.types import Ad
from kettle_wire.rest.jobs import Job


def services_of(job: Job, ad: Ad) -> list[tuple[str, str]]:
    """
    The name of each service that its description publishes, and where it is; empty: only programs reach it.
    """
    text = ad.get(ATTRIBUTE)
    try:
        found = parse_services(text) if isinstance(text, str) else ()
    except ServiceError:
        return []
    return [
        (each.name, "" if each.kind == "tcp" else f"/jobs/{job.cluster}.{job.proc}@{job.schedd}/{each.name}/")
        for each in found
    ]
