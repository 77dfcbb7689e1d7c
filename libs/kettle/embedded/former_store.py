"""
What a NATS server without accounts of its own has left in its store: the streams of the account `$G`, which nobody sees any
more once the server works in operator mode.
"""

import shutil
from pathlib import Path
from typing import Final

_FORMER: Final = "$G"


def take_over(store: Path, account: str) -> str:
    """
    Have the account with this public key go on with those streams, if it has none yet; otherwise remove them, for it has filled
    its own since from the log. What was done, as a sentence; empty: nothing, there are none.

    The server must not run. Raises OSError.
    """
    former, own = store / _FORMER, store / account
    if not former.is_dir():
        return ""
    if own.exists():
        shutil.rmtree(former)
        return f"{former} is removed: its streams are of a former version, and the pool has filled its own from the log since"
    former.rename(own)
    return f"the streams in {former} are now those of the pool's account, {own.name}"
