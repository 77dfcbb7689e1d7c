"""What a starter reads in a job's ad: literals only, since it carries no evaluator."""

import posixpath
import signal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kettle.transfer.file_lists import Remaps, is_url, items, remaps
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.codes import FIRST_VACATE, VacateCode

if TYPE_CHECKING:
    from kettle.transfer.exclusions import Exclusions

NULL_DEVICE: Final = "/dev/null"


class JobAd:
    """
    A job's ad, names without regard to case; what is not a literal of the expected kind counts as not given.
    """

    def __init__(self, ad: Ad) -> None:
        self.whole: Ad = dict(ad)
        """As it is now."""
        self._values = {name.lower(): value for name, value in ad.items()}
        self._excluded: Exclusions | None = None

    def change(self, changes: Ad) -> None:
        """Set attributes, under the names that the ad has for them already."""
        names = {name.lower(): name for name in self.whole}
        for name, value in changes.items():
            self.whole[names.setdefault(name.lower(), name)] = value
            self._values[name.lower()] = value

    def given(self, name: str) -> bool:
        """Whether there is such an attribute."""
        return name.lower() in self._values

    def value(self, name: str) -> Scalar | None:
        """Whatever the attribute is; None if there is no such attribute."""
        return self._values.get(name.lower())

    def text(self, name: str) -> str | None:
        """A string attribute."""
        value = self._values.get(name.lower())
        return value if isinstance(value, str) else None

    def number(self, name: str) -> float | None:
        """A number."""
        value = self._values.get(name.lower())
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def flag(self, name: str, *, default: bool) -> bool:
        """A truth value."""
        value = self._values.get(name.lower())
        return value if isinstance(value, bool) else default

    def items(self, name: str) -> list[str] | None:
        """A list, separated by commas; None if the attribute is not given."""
        text = self.text(name)
        return None if text is None else items(text)

    @property
    def transfers(self) -> bool:
        """Whether the job's files are moved; else it runs where they are, on a file system that is shared."""
        return (self.text("ShouldTransferFiles") or "").upper() != "NO"

    @property
    def urls(self) -> list[str]:
        """The input files that are fetched by plugins."""
        if not self.transfers:
            return []
        listed = [*(self.items("TransferInput") or ()), *(self.items("PublicInputFiles") or ())]
        return [item for item in listed if is_url(item)]

    def wants_results(self, code: int) -> bool:
        """
        Whether more than the standard streams comes back from a job that ended with this exit code (negative: signal).
        """
        if (self.text("WhenToTransferOutput") or "").upper() != "ON_SUCCESS":
            return True
        return code == (self.number("JobSuccessExitCode") or 0)

    @property
    def is_saved(self) -> bool:
        """
        Whether a job that is evicted keeps what it has made, for its next run.

        One that makes checkpoints goes on from the last of them: what lies there between two is no state to go on from,
        and would take the checkpoint's place.
        """
        kept = (self.text("WhenToTransferOutput") or "").upper() == "ON_EXIT_OR_EVICT"
        return self.transfers and kept and self.checkpoint_code is None

    @property
    def checkpoint_code(self) -> int | None:
        """
        The exit code by which the program says that it has saved what it has done so far, and wants to go on.
        """
        code = self.number("SuccessCheckpointExitCode")
        return None if code is None else int(code)

    def sent_to(self, remaps: Remaps, name: str) -> str | None:
        """The URL to which a result goes; None: to the submitter."""
        target = remaps.find(name)
        if target is not None and is_url(target):
            return target
        destination = self.text("OutputDestination")
        return f"{destination.rstrip('/')}/{target or name}" if destination else None

    @property
    def remaps(self) -> Remaps:
        """Other destinations of results.  Raises ManifestError."""
        return remaps(self.text("TransferOutputRemaps") or "")

    def excludes(self, name: str) -> bool:
        """Whether a result that nobody has listed by its own name stays behind.  Raises ManifestError."""
        if self._excluded is None and (patterns := self.text("TransferExclude")):
            from kettle.transfer.exclusions import (
                exclusions,  # rarely needed, and each page costs memory
            )

            self._excluded = exclusions(patterns)
        return self._excluded is not None and self._excluded.covers(name)

    @property
    def command(self) -> str:
        """Path of the program, as a transferred file its name in the sandbox."""
        command = self.text("Cmd") or ""
        return posixpath.basename(command) if self.transfers_executable else command

    @property
    def transfers_executable(self) -> bool:
        """Whether the program comes along with the job."""
        return self.transfers and self.flag("TransferExecutable", default=True)

    @property
    def keeps_outputs(self) -> bool:
        """Whether its results stay on the machine for a while, for jobs that come next."""
        return self.flag("KeepOutputsOnMachine", default=False)

    @property
    def proxy(self) -> str:
        """
        Path of the proxy certificate, as a transferred file its name in the sandbox; empty: the job has none.
        """
        path = self.text("x509userproxy") or ""
        return posixpath.basename(path) if self.transfers else path

    def stream(self, name: str) -> str | None:
        """The path of a standard stream on the submit side; None if the job does not want it."""
        path = self.text(name)
        return None if path in {None, "", NULL_DEVICE} else path

    def kill_signal(self, code: int) -> int:
        """The soft kill signal for an end with this VacateReasonCode, or HoldReasonCode (below 1000)."""
        own = (
            "RemoveKillSig" if code == VacateCode.JobRemoved else "HoldKillSig" if _held(code) else "KillSig"
        )
        for name in (own, "KillSig"):
            if number := _signal(self._values.get(name.lower())):
                return number
        return signal.SIGTERM

    def kill_timeout(self, limit: float) -> float:
        """Seconds that the job has after the soft kill signal; it may ask for fewer than `limit`."""
        asked = [
            value
            for name in ("JobMaxVacateTime", "KillSigTimeout")
            if (value := self.number(name)) is not None
        ]
        return max(0.0, min(limit, *asked)) if asked else limit


def _held(code: int) -> bool:
    return code < FIRST_VACATE or code == VacateCode.ScheddVacate


def _signal(value: Scalar | None) -> int:
    if isinstance(value, str):
        name = value.upper() if value.upper().startswith("SIG") else f"SIG{value.upper()}"
        value = signal.Signals[name] if name in signal.Signals.__members__ else 0
    return value if isinstance(value, int) and 0 < value < signal.NSIG else 0


def long_form(ad: Ad) -> str:
    """
    An ad in old syntax, as it lies in a sandbox, sorted by name.

    An expression's text stands as it came.  A line break in a string is written as a blank: the old syntax has no other
    way, and what reads these files reads lines.
    """
    pairs = [(name, ad[name]) for name in sorted(ad, key=str.lower)]
    return "".join([_line(*pair) if isinstance(pair[1], float) else _known_line(*pair) for pair in pairs])


def _line(name: str, value: Scalar) -> str:
    return f"{name} = {old_form(value)}\n"


_known_line: Final = lru_cache(maxsize=256, typed=True)(_line)
"""Jobs that follow one another in a process have most in common; of numbers 0.0 and -0.0 are equal, and not the same."""


def old_form(value: Scalar) -> str:
    """A value in old syntax."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + value.replace('"', '\\"').replace("\n", " ").replace("\r", " ") + '"'
        case Expr():
            return value.expr.replace("\n", " ")
        case float():
            return _real(value)
        case int():
            return str(value)


def _real(value: float) -> str:
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN alone differs from itself
        return f'real("{"NaN" if value != value else "INF" if value > 0 else "-INF"}")'  # noqa: PLR0124
    text = f"{value:.16G}"
    return text if any(char in text for char in ".EN") else f"{text}.0"
