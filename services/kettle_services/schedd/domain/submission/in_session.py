"""Submissions of running jobs: of which attempt they are is told by who knows it, and by nobody else."""

import msgspec

from kettle.jobs.lower_names import lower_names
from kettle.jobs.pool_access import SESSION
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.commands.queue import Submit


class SubmitInSession(Submit, frozen=True, kw_only=True):
    """What a running job submits by way of its shadow; it never travels as this."""

    session: str
    """The attempt, as `kettle.jobs.pool_access.session_of` calls it."""

    @classmethod
    def of(cls, submit: Submit, session: str) -> "SubmitInSession":
        """The submission as that of an attempt, whatever it says itself."""
        given = {name: getattr(submit, name) for name in submit.__struct_fields__}
        given["ad"] = {name: value for name, value in submit.ad.items() if name.lower() != SESSION.lower()}
        return cls(**given, session=session)


def in_session(submit: Submit) -> Submit:
    """
    The submission with its session in the ad, if it is of one.

    Raises:
        Unacceptable: it names a session itself, which would be taken for its own by who cleans up after it.
    """
    if SESSION.lower() in lower_names((*submit.ad, *submit.columns)):
        raise Unacceptable(
            f"the attribute {SESSION} says which running job has submitted a job: leave it out"
        )
    if isinstance(submit, SubmitInSession):
        return msgspec.structs.replace(submit, ad={**submit.ad, SESSION: submit.session})
    return submit
