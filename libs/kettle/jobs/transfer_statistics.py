"""`TransferInputStats` and `TransferOutputStats`: the files of a job's last attempt by what served them."""

from kettle_wire.ads.types import Ad, Expr
from kettle_wire.moved_files import SENT, MovedFiles, SourceTotal


def transfer_statistics(moved: MovedFiles) -> Ad:
    """
    Nested ads with names as HTCondor makes them, such as `CacheFilesCountLastRun`; a source that served nothing is not in them.
    """
    came = {name: total for name, total in moved.totals.items() if name != SENT}
    ad: Ad = {}
    if came:
        ad["TransferInputStats"] = _nested(came)
    if sent := moved.totals.get(SENT):
        ad["TransferOutputStats"] = _nested({"origin": sent})
    return ad


def _nested(totals: dict[str, SourceTotal]) -> Expr:
    inside = [
        f"{name.title()}FilesCountLastRun = {total.files}; {name.title()}SizeBytesLastRun = {total.bytes}; {name.title()}HitsLastRun = {total.hits}"
        for name, total in totals.items()
    ]
    return Expr(f"[ {'; '.join(inside)} ]")
