"""About what the submitter is sent mail, and to whom."""

from typing import Final

from kettle.jobs.mail_recipients import RecipientError, recipients
from kettle.submit.expressions import unquoted
from kettle.submit.lookup import Lookup, is_settled
from kettle_wire.ads.types import Ad

_NOTIFICATIONS: Final = {"never": 0, "always": 1, "complete": 2, "error": 3, "start": 4}


def mails(lookup: Lookup) -> Ad:
    """The mails that a job asks for; by default none."""
    ad: Ad = {"JobNotification": 0}
    if given := lookup.get("notification"):
        if given.text.lower() not in _NOTIFICATIONS:
            given.refuse(f"notification must be never, always, complete, error or start, not '{given.text}'")
        ad["JobNotification"] = _NOTIFICATIONS[given.text.lower()]
    if given := lookup.get("notify_user"):
        ad["NotifyUser"] = unquoted(given.text)
        if is_settled(given.text):
            try:
                recipients(unquoted(given.text))
            except RecipientError as error:
                given.refuse(f"notify_user cannot be used: {error}")
    if given := lookup.get("email_attributes"):
        ad["EmailAttributes"] = ",".join(unquoted(given.text).replace(",", " ").split())
    return ad
