"""What has to be there before an attempt goes to its machine: input files, and places for the results."""

import asyncio
import errno
import time
from functools import partial
from pathlib import Path

import msgspec

from kettle.jobs.match_references import unknown
from kettle.jobs.sealed_attributes import left_sealed
from kettle.transfer.file_lists import ManifestError
from kettle.transfer.spooled_jobs import is_spooled
from kettle.transfer.submit_side_paths import STDERR, STDOUT, destination
from kettle_services.shadow.attempts.dataflow import is_made, wants_to_be_skipped
from kettle_services.shadow.attempts.submit_side import AttemptContext
from kettle_services.shadow.domain.transfer_checks import check_inputs, check_outputs
from kettle_services.shadow.file_transfer.input_files import InputError, Source
from kettle_services.shadow.file_transfer.output_files import OutputError
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.codes import HoldCode
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.startd import Activation
from kettle_wire.session_attributes import ID as MEMBER


class Prepared(msgspec.Struct, frozen=True):
    """An attempt that can go to its machine, and the input files that this will ask for."""

    activation: Activation
    sources: list[Source]


async def prepare(
    assignment: Assignment, side: AttemptContext, places: FileAccess
) -> Prepared | AttemptResult:
    """Or why the attempt is over before it began."""
    if reference := unknown(assignment.ad):
        reason = f"Cannot expand {reference}."
        return AttemptResult(ending=Ending(code=HoldCode.JobPolicyUndefined, reason=reason))
    if left_sealed(assignment.ad):
        reason = (
            "the job's environment cannot be read any more, for the access point has lost the key with which it was sealed:"
            " submit the job again"
        )
        return AttemptResult(ending=Ending(code=HoldCode.CorruptedCredential, reason=reason))
    if (senseless := _senseless(assignment.ad)) is not None:
        return senseless
    try:
        places.act("", "", partial(_refuse_outputs, assignment.ad, places))
        if wants_to_be_skipped(assignment.ad) and await side.file_work.do(
            partial(places.act, "look at", assignment.job, partial(is_made, assignment.ad, places))
        ):
            return AttemptResult(exit=ExitRecord(code=0, at=time.time()))
        sources = await _gather(assignment, side, places)
    except InputError as error:
        return AttemptResult(ending=Ending(code=error.code, subcode=error.errno, reason=str(error)))
    except OutputError as error:
        return AttemptResult(
            ending=Ending(code=HoldCode.TransferOutputError, subcode=error.errno, reason=str(error))
        )
    activation = Activation(
        key=assignment.key,
        job=assignment.job,
        attempt=assignment.attempt,
        ad=assignment.ad,
        inputs=[source.file for source in sources],
        shadow=side.shadow,
        trace=assignment.trace,
    )
    return Prepared(activation, sources)


async def _gather(assignment: Assignment, side: AttemptContext, places: FileAccess) -> list[Source]:
    """The input files.  Raises InputError."""
    job, sent = assignment.job, None
    if is_spooled(assignment.ad):
        try:
            of_session = MEMBER in assignment.ad
            find = side.spooled.without_files if of_session else side.spooled.wanted
            sent = await asyncio.to_thread(find, job, places.rights)
        except (OSError, ValueError) as error:
            raise InputError(side.spooled.directory(job), str(error)) from error
    return await side.inputs.gather(assignment.ad, side.spool.saved(job), sent=sent, places=places)


def _refuse_outputs(ad: Ad, places: FileAccess) -> None:
    """A job whose results have no place need not run."""
    for stream in (STDOUT, STDERR):
        target = destination(ad, stream)
        if target is not None:
            try:
                places.refuse_own(Path(target))
            except OSError as error:
                raise OutputError(Path(target), error) from error


def _senseless(ad: Ad) -> AttemptResult | None:
    """Why the lists of a job make no sense on any machine."""
    checks = (
        (check_outputs, HoldCode.TransferOutputError, "output"),
        (check_inputs, HoldCode.TransferInputError, "input"),
    )
    for check, code, what in checks:
        try:
            check(ad)
        except ManifestError as error:
            reason = f"Transfer {what} files failure at the access point: {error}"
            return AttemptResult(ending=Ending(code=code, subcode=errno.EINVAL, reason=reason))
    return None
