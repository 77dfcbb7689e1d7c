"""
Log files that do not grow without end.

What a service writes goes to the standard error that its master has opened for it, and that its children have inherited: a
startd's starters write into the same file. So a full file is copied and emptied, and not renamed: all of them go on writing
into the file that everybody reads.
"""

import logging
import os
import stat
import threading
from pathlib import Path
from typing import Final, TextIO

_CHUNK: Final = 1 << 20


class RotatingHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream whose file is put aside as `.1`, `.2` and so on when it has grown beyond a limit."""

    def __init__(self, stream: TextIO, path: Path, *, limit_bytes: int, rotations: int) -> None:
        super().__init__(stream)
        self._path = path
        self._limit = limit_bytes
        self._rotations = rotations
        self._copying: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; the one that fills the file has it put aside, beside what else is done."""
        super().emit(record)
        if self._copying is None and os.fstat(self.stream.fileno()).st_size > self._limit:
            self._copying = threading.Thread(target=self._rotate, name="log rotation", daemon=True)
            self._copying.start()

    def settle(self) -> None:
        """Wait until nothing is being put aside."""
        if (copying := self._copying) is not None:
            copying.join()

    def _rotate(self) -> None:
        stage = _beside(self._path, "new")
        try:
            with self._path.open("rb") as full, stage.open("wb") as copy:
                os.fchmod(copy.fileno(), 0o600)
                while chunk := full.read(_CHUNK):  # while lines are added, which is soon done
                    copy.write(chunk)
                with self.lock or threading.RLock():
                    self.flush()
                    copy.write(full.read())
                    os.ftruncate(self.stream.fileno(), 0)
            for number in range(self._rotations - 1, 0, -1):
                if (older := _beside(self._path, str(number))).exists():
                    older.replace(_beside(self._path, str(number + 1)))
            if self._rotations:
                stage.replace(_beside(self._path, "1"))
            else:
                stage.unlink()
        except OSError:
            # on a full disk: it is tried again at the next line, and the log is not the place to say so
            stage.unlink(missing_ok=True)
        finally:
            self._copying = None


def file_of(stream: TextIO, directory: Path) -> Path | None:
    """The file that a stream writes to, if it is one in this directory."""
    try:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return None
        path = Path(f"/proc/self/fd/{stream.fileno()}").readlink()
    except (OSError, ValueError):
        return None
    return path if path.parent == directory.resolve() and path.exists() else None


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}.{suffix}")
