"""The files in which it is written what happens to the jobs, and what is written there."""

from typing import Final

from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import integer, unquoted
from kettle.submit.lookup import Lookup, flag, is_settled, placed
from kettle_wire.ads.types import Ad

_FILES: Final = (("log", "UserLog"), ("dagman_log", "DAGManNodesLog"))
_TEXTS: Final = (
    ("submit_event_notes", "SubmitEventNotes"),
    ("submit_event_user_notes", "SubmitEventUserNotes"),
    ("submit_event_notes_attrs", "SubmitEventNotesAttrs"),
    ("ulog_execute_attrs", "UserLogExecuteEventAttrs"),
    ("job_ad_information_attrs", "JobAdInformationAttrs"),
)


def logs(lookup: Lookup) -> Ad:
    """The job event logs: the submitter's own, and that of the workflow of which the jobs are nodes."""
    ad: Ad = {}
    iwd = lookup.iwd()
    for name, attribute in _FILES:
        if given := lookup.get(name):
            path = iwd / unquoted(given.text)
            if is_settled(path) and lookup.checks_files and (why := lookup.disk.unwritable(path)):
                given.refuse(f"the {name} cannot be written: {why}")
            ad[attribute] = str(path)
    if lookup.get("log_xml"):
        ad["UserLogUseXML"] = flag(lookup, "log_xml", default=False)
    for name, attribute in _TEXTS:
        if given := lookup.get(name):
            ad[attribute] = given.text
    if given := lookup.get("dagman_job_id"):
        try:
            ad["DAGManJobId"] = integer(given.text, "dagman_job_id")
        except PlacelessError as error:
            raise placed(given, error) from error
    return ad
