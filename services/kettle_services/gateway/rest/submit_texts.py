"""
Submit descriptions that come as text.

To read one may mean to read files and to run commands (`include`, `queue ... from`), with the rights of this process.  So only its
own account may send one; anybody else sends the jobs themselves.
"""

import asyncio
import os
import pwd
from pathlib import Path

import msgspec

from kettle.client import ClientError, SubmitError, prepare
from kettle.submit import Site
from kettle.submit import Submission as PreparedSubmission
from kettle.submit.defaults import default_needs
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.rest.jobs import Submission
from kettle_wire.rest.problem import ProblemCode


async def submission_of(person: Person, body: Submission | str) -> Submission:
    """The jobs of a body, with what they need where they do not say it; raises RequestRefused."""
    if isinstance(body, Submission):
        needs = default_needs(body.ad, body.columns, Site.here())
        return msgspec.structs.replace(body, ad=body.ad | needs) if needs else body
    if not person.is_own_account:
        raise RequestRefused(
            415,
            ProblemCode.BODY_TYPE,
            "a submit description is read with the rights of the gateway's account, so only that account may send one; send the jobs "
            "as application/json",
        )
    try:
        made = await asyncio.to_thread(_prepared, body)
    except (SubmitError, ClientError) as error:
        raise refused_field("/body", str(error), code=ProblemCode.BODY_INVALID, status=422) from error
    return Submission(ad=made.ad, columns=made.columns, rows=made.rows)


def _prepared(text: str) -> PreparedSubmission:
    """
    Names of files begin at the account's home directory; nothing of the gateway's environment is shown to the description.
    """
    account = pwd.getpwuid(os.geteuid())
    environ = {
        "HOME": account.pw_dir,
        "LOGNAME": account.pw_name,
        "PATH": os.environ.get("PATH", os.defpath),
        "USER": account.pw_name,
    }
    return prepare(text, cwd=Path(account.pw_dir), environ=environ, source="body")
