"""Our job ads beside those that HTCondor's condor_submit makes of three hundred drawn descriptions."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest
from tests.conformance.submit_descriptions import COUNT, SPELLINGS, drawn, lay

from kettle.classad import ClassAdError, unparse
from kettle.classad import parse as parse_expression
from kettle.submit import Site, Submission, SubmitError, expand_clusters, parse
from kettle.submit.errors import NoJobError
from kettle_services.schedd.domain.submission.accounting_group import completed
from kettle_wire.ads.types import Expr

DATA: Final = Path(__file__).parent / "data/submit-differential.jsonl"
SITE: Final = Site(arch="X86_64", opsys="LINUX", file_system_domain="example.org", skip_filechecks=True)
NEEDED: Final = {"ProcId", "ClusterId", "JobSubmitMethod"}
"""What is set elsewhere."""


class Vector(msgspec.Struct):
    text: str
    jobs: list[dict[str, str]] | None = None
    error: str = ""
    said: str = ""


class Difference(NamedTuple):
    """One attribute of one job, in lower case, or the refusal or number of all of them."""

    vector: Vector
    job: int
    attribute: str
    theirs: str
    ours: str


def _of(*attributes: str) -> Callable[[Difference], bool]:
    return lambda found: found.attribute in attributes


def _refused_here(pattern: str) -> Callable[[Difference], bool]:
    return lambda found: (
        found.attribute == "refusal" and not found.theirs and re.search(pattern, found.ours) is not None
    )


def _refused_there(pattern: str) -> Callable[[Difference], bool]:
    return lambda found: (
        found.attribute == "refusal" and not found.ours and re.search(pattern, found.theirs) is not None
    )


def _without_versions(text: str) -> str:
    text = text.replace(
        '(versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk))',
        "(TARGET.Disk >= RequestDisk)",
    )
    return text.replace(' && versioncmp(split(TARGET.CondorVersion)[1],"8.9.7") >= 0', "")


CLASSES: Final[dict[str, Callable[[Difference], bool]]] = {
    "no clause about HTCondor's version: every machine here can do it": lambda found: (
        found.attribute == "requirements" and _without_versions(found.theirs) == found.ours
    ),
    "memory is raised by the schedd and recorded, not by a transform when the job is evicted": _of(
        "transformonevict", "transformbody_requestmemory", "transformbody_requestdisk",
        "retryrequestmemory", "retryrequestdisk", "nextrequestmemory", "maxrequestmemory",
    ),
    "a command that is empty in a later row is empty there, and not what it is in the first row": lambda found: (
        found.job > 0
        and found.attribute
        in {"in", "out", "err", "streamin", "streamout", "streamerr", "transferin", "transferout", "transfererr"}
    ),
    "a job's lease is at least 20 s in every job, and not only in the first of a cluster": lambda found: (
        found.job > 0 and found.attribute == "jobleaseduration" and found.ours == "20"
    ),
    "sizes are those of the files that are sent, in every job, and not those of the first program": lambda found: (
        found.attribute in {"diskusage", "imagesize", "executablesize", "transferinputsizemb"}
    ),
    "transfer_executable is read as every other truth value, 0 included": lambda found: (
        found.attribute in {"cmd", "transferexecutable"} and re.search(r"(?i)transfer_?executable *= *(0|true &&)", found.vector.text) is not None
    ),
    "the old syntax of environments is always converted: one attribute for one meaning": _of(
        "env", "envdelim", "environment"
    ),
    "what goes with Requirements is in the ad also beside those of one's own": _of("scheddinterval", "wanttransferpluginmethods"),
    "queue 0 makes no job, as the manual says": lambda found: (
        found.attribute == "number" and "queue 0" in found.vector.text
    ),
    "a macro without a value is refused: HTCondor tells of it, and submits with an empty text": _refused_here(
        r"\$(INT|REAL|CHOICE)\(.*(is not a number|no choice number)"
    ),
    "yes, no, t and f are truth values everywhere": _refused_there("must eval to a boolean"),
    "several queue statements are carried out, as releases before 25 did": _refused_there(
        "Extra data found after queue statement"
    ),
    "a list may end with ) at the end of its last item": _refused_there("without finding closing brace"),
    "blanks may stand in a slice": _refused_there(r"Invalid \[::\] statement"),
}  # fmt: skip
"""Which differences are meant, and why."""


def vectors() -> list[Vector]:
    return [msgspec.json.decode(line, type=Vector) for line in DATA.read_text().splitlines()]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("differential")
    lay(directory)
    return directory


def submissions(text: str, here: Path) -> list[Submission]:
    environ = {"PATH": "/bin:/usr/bin", "HOME": "/home/somebody", "HERE": str(here), "KNOWN": "known"}
    try:
        return expand_clusters(parse(text, source="job.sub", cwd=here, environ=environ, tolerant=True), SITE)
    except NoJobError:
        return []


def ours(text: str, here: Path) -> list[dict[str, str]]:
    """All jobs of a description, as root submits it."""
    groups = {"physics": ["*"], "physics.atlas": ["*"]}
    jobs: list[dict[str, str]] = []
    for cluster, submission in enumerate(submissions(text, here), start=1):
        for proc in range(submission.count):
            ad, *_ = completed(submission.queued(proc, cluster), [], [[]], owner="root", members=groups)
            jobs.append({name: shown(value, here) for name, value in ad.items() if name not in NEEDED})
    return jobs


def shown(value: object, here: Path) -> str:
    text = value.expr if isinstance(value, Expr) else unparse(value)  # type: ignore[arg-type]
    return canonical(text.replace(str(here), "$HERE"))


def canonical(text: str) -> str:
    try:
        return unparse(parse_expression(text))
    except ClassAdError:
        return text


def changes(base: dict[str, str], job: dict[str, str]) -> dict[str, str]:
    """
    What is another value than in the simplest job; an attribute that is undefined is as one that is missing.
    """
    known = {name.lower() for name in job}
    new = {name.lower(): value for name, value in job.items() if base.get(name) != value}
    new |= {name.lower(): "<absent>" for name in base if name.lower() not in known}
    return {
        name: "<absent>" if value == "undefined" and name in {key.lower() for key in base} else value
        for name, value in new.items()
    }


def differences(vector: Vector, base: dict[str, str], here: Path) -> Iterator[Difference]:
    try:
        got, refusal = ours(vector.text, here), ""
    except SubmitError as error:
        got, refusal = [], str(error)
    if refusal or vector.jobs is None:
        if not (refusal and vector.jobs is None):
            yield Difference(vector, 0, "refusal", vector.error, refusal)
        return
    if len(got) != len(vector.jobs):
        yield Difference(vector, 0, "number", str(len(vector.jobs)), str(len(got)))
        return
    for number, (mine, given) in enumerate(zip(got, vector.jobs, strict=True)):
        new, whole = changes(base, mine), {name.lower(): value for name, value in mine.items()}
        theirs = {name.lower(): canonical(value) for name, value in given.items() if name not in NEEDED}
        for name in sorted(set(new) | set(theirs)):
            if new.get(name, "<absent>") != theirs.get(name, "<absent>") or (name in new) != (name in theirs):
                yield Difference(vector, number, name, theirs.get(name, ""), whole.get(name, ""))


def test_vectors_belong_to_the_generator() -> None:
    """
    The descriptions are those that the generator draws, and each spelling of each command is in one of them.
    """
    texts = [vector.text for vector in vectors()[1:]]
    assert [drawn(seed) for seed in range(COUNT)] == texts
    whole = "\n".join(texts)
    for name, (others, _) in SPELLINGS.items():
        for spelling in (name, *others):
            assert re.search(rf"^{spelling}\s*=", whole, re.IGNORECASE | re.MULTILINE), spelling


def test_job_ads_are_those_of_condor_submit(here: Path) -> None:
    """
    Three hundred descriptions make the same jobs, attribute by attribute, but for differences that are meant.
    """
    simple, *drawn_ones = vectors()
    [base] = ours(simple.text, here)
    unmeant: list[Difference] = []
    met: set[str] = set()
    for vector in drawn_ones:
        for found in differences(vector, base, here):
            reasons = [reason for reason, holds in CLASSES.items() if holds(found)]
            met.update(reasons)
            unmeant += [] if reasons else [found]
    assert [] == [(found.vector.text, found[1:]) for found in unmeant]
    assert set(CLASSES) == met, "a class without a difference has outlived its reason"


_WARNED: Final = re.compile(r"the (?:line '(\S+) = |Queue variable '([^']+)')")
_TOLD_OTHERWISE: Final = re.compile(
    r"deferral_?(window|prep_?time)|cron_?(window|prep_?time)|retry_request_disk|submit_?event_?notes_?attrs|executable|cmd|item"
)
"""
Commands without effect where they stand, which get a warning that says so; one that is carried out there only; and Item,
which every queue statement sets there.
"""


def test_the_same_lines_mean_nothing(here: Path) -> None:
    """
    Each line that has a warning there has one here, and no other, but for names in function macros, in conditions and
    in their own values, of which HTCondor does not see that they are used.
    """
    compared = 0
    for vector in vectors()[1:]:
        if not vector.jobs:
            continue
        try:
            found = submissions(vector.text, here)
        except SubmitError:
            continue
        if not found:
            continue
        unused = {line.name.lower() for each in found for line in each.unused}
        theirs = {(line or variable).lower() for line, variable in _WARNED.findall(vector.said)}
        differing = {name for name in unused ^ theirs if not _TOLD_OTHERWISE.fullmatch(name)}
        for name in differing:
            elsewhere = rf"(?im)\$[a-z]+\([^)]*\b{name}\b|^{name} *= *\$\({name}\)|^(if|elif) .*\b{name}\b"
            assert re.search(elsewhere, vector.text), (name, vector.text)
        compared += 1
    assert compared > COUNT // 2


def test_most_descriptions_are_compared_in_full() -> None:
    """Most of the vectors are jobs and not complaints."""
    made = [vector for vector in vectors() if vector.jobs]
    assert len(made) > COUNT * 3 // 4
