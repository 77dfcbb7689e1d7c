"""
What the end of a log file already says, so that an event that is delivered again is not written again.
"""

from collections import Counter

_END = "\n...\n"


class Tail:
    """
    The complete events at the end of one file, each counted; pure.

    It answers for the redelivered events alone: they are as old as the file's last lines.
    """

    def __init__(self, text: str) -> None:
        self._texts = Counter(f"{part}{_END}" for part in text.split(_END)[:-1])

    def already_written(self, text: str) -> bool:
        """Whether the file has this event; each time it stands there answers for one delivery."""
        if not self._texts[text]:
            return False
        self._texts[text] -= 1
        return True
