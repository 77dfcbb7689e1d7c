"""
The submit description language: text in, clusters of job ads out.

    description = parse(text, source="job.sub", cwd=Path.cwd(), environ=os.environ, facts={...})
    submissions = expand_clusters(description, Site.here())     or expand(...), where it must be one

What cannot be carried out is refused with the line and one sentence (`SubmitError`), unknown commands included.
"""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from kettle.submit.errors import NoJobError, PlacelessError, SubmitError
from kettle.submit.expansion import Submission, expand, expand_clusters
from kettle.submit.macros import CLUSTER
from kettle.submit.statements import Description, Reader
from kettle.submit.submit_machine import Site, architecture, operating_system

__all__ = [
    "CLUSTER",
    "Description",
    "NoJobError",
    "PlacelessError",
    "Site",
    "Submission",
    "SubmitError",
    "architecture",
    "expand",
    "expand_clusters",
    "operating_system",
    "parse",
]


def parse(
    text: str,
    *,
    source: str,
    cwd: Path,
    environ: Mapping[str, str],
    given: Mapping[str, str] | None = None,
    automatic: Mapping[str, str] | None = None,
    entropy: random.Random | None = None,
    tolerant: bool = False,
    templates: Callable[[str], str | None] = lambda _name: None,
    programs: bool = True,
) -> Description:
    """
    Read a description.

    `source` is how errors call it; relative names start at `cwd`; `environ` is for `$ENV()` and `getenv`.
    `given` are assignments from beside the text, which the text may override; `automatic` are macros that
    need not be used (ARCH, SUBMIT_TIME, ...); `entropy` is where `$RANDOM_...` draws from.

    `tolerant`: as HTCondor accepts descriptions of existing programs: a name that is not a submit command is a macro.

    `templates`: the text of a template by its name, for `use template`; None: there is none.
    `programs`: whether it may have programs run that print a part of it; otherwise that is an error.

    Raises:
        SubmitError: a line makes no sense, a command is unknown, or a queue statement has no items.
    """
    return Reader(
        text,
        source=source,
        cwd=cwd,
        environ=environ,
        given=given or {},
        automatic=automatic or {},
        entropy=entropy or random.SystemRandom(),
        tolerant=tolerant,
        templates=templates,
        programs=programs,
    ).read()
