"""What the end of a log file already says, so that an event that is delivered again is not written again."""

from collections import Counter

from kettle.userlog.framing import ENDS


class Tail:
    """
    The complete events at the end of one file, in whatever form, each counted; pure.

    What stands before the first event that the text has as a whole is taken for an event, and equals none.

    It answers for the redelivered events alone: they are as old as the file's last lines.
    """

    def __init__(self, text: str) -> None:
        ends = {f"{end}\n" for end in ENDS.values()}
        self._texts: Counter[str] = Counter()
        lines: list[str] = []
        for line in text.splitlines(keepends=True):
            lines.append(line)
            if line in ends:
                self._texts["".join(lines)] += 1
                lines.clear()

    def already_written(self, text: str) -> bool:
        """Whether the file has this event; each time it stands there answers for one delivery."""
        if not self._texts[text]:
            return False
        self._texts[text] -= 1
        return True
