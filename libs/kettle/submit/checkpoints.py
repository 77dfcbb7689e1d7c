"""Jobs that save what they have done so far, and go on from there."""

from collections.abc import Iterator
from typing import Final

from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import integer, unquoted
from kettle.submit.lookup import Lookup, is_settled, placed
from kettle.transfer.file_lists import items, leaves
from kettle_wire.ads.types import Ad

_LARGEST_CODE: Final = 255


def checkpoints(lookup: Lookup) -> Ad:
    """With which exit code the program says that it has saved something, and which files that are."""
    ad: Ad = {}
    code, files = lookup.get("checkpoint_exit_code"), lookup.get("transfer_checkpoint_files")
    if code:
        try:
            number = integer(code.text, "checkpoint_exit_code")
        except PlacelessError as error:
            raise placed(code, error) from error
        if not 0 < number <= _LARGEST_CODE:
            code.refuse(f"checkpoint_exit_code must be between 1 and {_LARGEST_CODE}, not {number}")
        ad = {"SuccessCheckpointExitCode": number, "WantFTOnCheckpoint": True}
    if files:
        if code is None:
            lookup.idle(files, "transfer_checkpoint_files means nothing without checkpoint_exit_code")
        for name in items(unquoted(files.text)):
            if is_settled(name) and leaves(name):
                files.refuse(
                    f"the checkpoint file {name} leads out of the sandbox; name it relative to where the job starts"
                )
        ad["TransferCheckpoint"] = unquoted(files.text)
    return ad


def checkpointing(lookup: Lookup, checked: set[str]) -> Iterator[str]:
    """
    The clause of Requirements; `checked` are the attributes that the submitter looks at himself, in lower case.
    """
    if lookup.get("checkpoint_exit_code") and "hasselfcheckpointtransfers" not in checked:
        yield "TARGET.HasSelfCheckpointTransfers"
