"""Jobs whose files are sent to the access point: their places in its spool, and when they may run."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from kettle.jobs.submitted_ad import CLUSTER_MACRO
from kettle.jobs.submitted_on_hold import on_hold
from kettle.transfer.file_lists import ManifestError, is_url, remaps
from kettle.transfer.s3_signatures import ACCESS_KEY, SECRET_KEY
from kettle.transfer.spooled_jobs import HELD_FOR, PLACES, PREFIX, RELEASED_FOR
from kettle.transfer.submit_side_paths import NULL, STDERR, STDOUT
from kettle_services.schedd.domain.jobs.factory import asked
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.leave_in_queue import ATTRIBUTE
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.codes import HoldCode
from kettle_wire.events import JobHeld, JobReleased

Submission = tuple[Ad, list[str], list[list[Scalar]]]

STAYS: Final = Expr(
    "JobStatus == 4 && (StageOutFinish is undefined || StageOutFinish == 0) && "
    "(CompletionDate is undefined || CompletionDate == 0 || time() - CompletionDate < 864000)"
)
"""LeaveJobInQueue of those that do not say it: ten days, or until the results were fetched."""
_BY_TRANSFER: Final = "a job whose files are sent to the access point (-spool) cannot have"


def held() -> JobHeld:
    """What is recorded of each with its submission."""
    return JobHeld(code=HoldCode.SpoolingInput, reason=HELD_FOR)


def all_there() -> JobReleased:
    """What is recorded of each that has no files to be sent, right after that."""
    return JobReleased(reason=RELEASED_FOR, spooled=0)


def released(job: Job, size: int = 0) -> JobReleased | None:
    """What is recorded of one whose files, so many bytes, are there; None if it does not wait for them."""
    waits = job.status == "held" and job.hold_code == HoldCode.SpoolingInput
    return JobReleased(reason=RELEASED_FOR, spooled=size) if waits else None


def placed(submission: Submission, root: Path) -> Submission:
    """
    A submission whose jobs have their places in the spool, and stay in the queue until their results were fetched.

    Raises Unacceptable for what would have the access point open files of the submitter's.
    """
    ad, columns, rows = submission
    if asked(ad):
        raise Unacceptable(f"{_BY_TRANSFER} max_materialize or max_idle: submit it in parts")
    if any(True for _ in on_hold(ad, columns, rows)):
        raise Unacceptable(f"{_BY_TRANSFER} hold = true: it is held until its files are there")
    _check(ad, columns, rows)
    spelled = {name.lower(): name for name in PLACES}
    said: Ad = {spelled[name.lower()]: value for name, value in ad.items() if name.lower() in spelled}
    indices = {spelled[name.lower()]: i for i, name in enumerate(columns) if name.lower() in spelled}
    new = _columns(said, indices, rows, root)
    named = [f"{PREFIX}{spelled[name.lower()]}" if name.lower() in spelled else name for name in columns]
    kept: Ad = {name: value for name, value in ad.items() if name.lower() not in spelled}
    if not _says_staying(ad, columns):
        kept = {name: value for name, value in kept.items() if name.lower() != ATTRIBUTE.lower()}
        kept[ATTRIBUTE] = STAYS
    shared: Ad = {name: values[0] for name, values in new.items() if name != "Iwd" and _alike(values)}
    own = {name: values for name, values in new.items() if name not in shared}
    return (
        kept | {f"{PREFIX}{name}": value for name, value in said.items()} | shared,
        [*named, *own],
        [[*row, *more] for row, more in zip(rows, zip(*own.values(), strict=True), strict=True)],
    )


def _columns(
    said: Ad, indices: Mapping[str, int], rows: list[list[Scalar]], root: Path
) -> dict[str, list[Scalar]]:
    """
    The new value of each place for each job; `said` are the old ones that all jobs share, `indices` where the others
    are.
    """
    known: dict[tuple[Scalar, ...], Ad] = {}
    base = f"{root}/{CLUSTER_MACRO}"
    found: dict[str, list[Scalar]] = {name: [] for name in ("Iwd", *said, *indices)}
    for proc, row in enumerate(rows):
        key = tuple(row[i] for i in indices.values())
        if key not in known:
            known[key] = _moved(said | dict(zip(indices, key, strict=True)), base)
        for name, value in (known[key] | {"Iwd": f"{base}/{proc}"}).items():
            found[name].append(value)
    return found


def _moved(said: Ad, base: str) -> Ad:
    """
    The places of a job but the first; an Out or Err that is an expression is for its submitter to evaluate.
    """
    streams = {
        name: STDOUT if said[name] == said.get("Out") else STDERR for name in ("Out", "Err") if name in said
    }
    moves: Mapping[str, Callable[[str], str]] = {
        "UserLog": lambda text: (
            f"{base}/log.{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        ),
        "TransferOutputRemaps": _urls,
        "OutputDirectory": lambda _: "",
    }
    moved = {
        name: move(value) if isinstance(value := said[name], str) else value
        for name, move in moves.items()
        if name in said
    }
    return moved | {name: NULL if said[name] == NULL else stream for name, stream in streams.items()}


def _urls(text: str) -> str:
    """Of the remaps those that lead elsewhere than to the submitter's disk."""
    try:
        targets = remaps(text).targets
    except ManifestError as error:
        raise Unacceptable(f"TransferOutputRemaps: {error}") from error
    kept = [(name, target) for name, target in targets.items() if is_url(target)]
    return ";".join(f"{_quoted(name).replace('=', chr(92) + '=')}={_quoted(target)}" for name, target in kept)


def _quoted(text: str) -> str:
    return text.replace(";", "\\;")


def _check(ad: Ad, columns: list[str], rows: list[list[Scalar]]) -> None:
    names = {name.lower() for name in (*ad, *columns)}
    for name in (ACCESS_KEY, SECRET_KEY):
        if name.lower() in names:
            raise Unacceptable(f"{_BY_TRANSFER} {name}: the access point reads keys from its own disk only")
    if any(name.startswith(PREFIX.lower()) for name in names):
        raise Unacceptable(f"attributes that begin with {PREFIX} are set by the schedd, not by a submission")
    modes = {value for name, value in ad.items() if name.lower() == "shouldtransferfiles"}
    for i in (i for i, name in enumerate(columns) if name.lower() == "shouldtransferfiles"):
        modes |= {row[i] for row in rows}
    if any(isinstance(mode, str) and mode.upper() == "NO" for mode in modes):
        raise Unacceptable(f"{_BY_TRANSFER} should_transfer_files = NO")


def _says_staying(ad: Ad, columns: list[str]) -> bool:
    """Whether the job asks to stay in the queue; a false that is in every submission does not count."""
    said = (name for name, value in ad.items() if value is not False)
    return any(name.lower() == ATTRIBUTE.lower() for name in (*said, *columns))


def _alike(values: list[Scalar]) -> bool:
    return all(type(value) is type(values[0]) and value == values[0] for value in values)
