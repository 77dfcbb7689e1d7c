"""
What the site makes of a submission before it is recorded: its transforms change it, its requirements refuse it.

Pure.  Jobs that are alike in all that is looked at are looked at once.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from kettle.classad import ClassAd, ClassAdError, Node, conceals, evaluate, parse, references
from kettle.jobs.ad import KEPT
from kettle.runtime.expression_types import ConditionText, ReasonText
from kettle.transforms import TooDifferentError, Transform, transformed
from kettle.transforms import parse as parse_transform
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.submission.validation import SET_BY_SCHEDD, Unacceptable
from kettle_wire.ads import Ad, Scalar

PROTECTED: Final = SET_BY_SCHEDD | KEPT
"""What follows from the credential or from events: nobody's to set, not the administrator's either."""
_OWNER: Final = "Owner"
MOST_VALUES: Final = 1_000_000
"""
Attributes, times jobs that differ in what is looked at: some hundreds of megabytes while they are looked at.
"""
_MOST_SENTENCES: Final = 20
_LONGEST_SENTENCE: Final = 1_000


class JobTransform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of JOB_TRANSFORM_NAMES. Raises ValueError, with the line, for a text that is no transform."""

    name: str
    transform: str

    def __post_init__(self) -> None:
        self.parsed  # noqa: B018 - raises

    @property
    def parsed(self) -> Transform:
        """Its statements."""
        return parse_transform(self.transform, source=f"job transform '{self.name}'", protected=PROTECTED)


class SubmitRequirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    One of SUBMIT_REQUIREMENT_NAMES; the texts are expressions over the job's ad. Raises ValueError for what is none.
    """

    name: str
    expression: ConditionText
    """It must be true of each job as the transforms have left it."""
    reason: ReasonText = ""
    """A string: why it is refused, instead of a sentence that shows the expression."""
    is_warning: ConditionText = "false"
    """True: the submission is accepted, and the submitter gets the reason as a warning."""

    def __post_init__(self) -> None:
        for text in (self.expression, self.reason or "true", self.is_warning):
            try:
                parse(text)
            except ClassAdError as error:
                raise ValueError(
                    f"submit requirement '{self.name}': '{text}' cannot be read: {error}"
                ) from error


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """A submission as it is to be recorded."""

    ad: Ad
    columns: list[str]
    rows: list[list[Scalar]]
    warnings: list[str]
    """For the submitter: requirements that it does not meet and need not."""
    complaints: list[str]
    """For the administrator: statements of transforms that could not be carried out."""


class Admission:
    """The transforms and requirements of one access point."""

    def __init__(
        self,
        transforms: Sequence[JobTransform],
        requirements: Sequence[SubmitRequirement],
        macros: Mapping[str, str] | None = None,
    ) -> None:
        """`macros` are those that every transform finds."""
        self._macros = {name.lower(): text for name, text in (macros or {}).items()}
        self._transforms = [each.parsed for each in transforms]
        self._requirements = [
            (each, parse(each.expression), parse(each.reason or '""'), parse(each.is_warning))
            for each in requirements
        ]
        self.needed: Final = bool(transforms or requirements)
        self._words = self._looked_at()

    def _looked_at(self) -> Collection[str] | None:
        words: set[str] = set()
        for transform in self._transforms:
            if transform.words is None:
                return None
            words |= transform.words
        for _, *expressions in self._requirements:
            for each in expressions:
                if conceals(each):
                    return None
                words |= {name.lower() for name in references(each).external}
        return words

    def admit(
        self, owner: str, ad: Ad, columns: list[str], rows: list[list[Scalar]], *, now: float
    ) -> Admitted:
        """
        The submission as the site wants it.

        Raises Unacceptable if a job does not meet a requirement, or nobody can tell: then with the cause.
        """
        warnings, complaints = _Sentences(), _Sentences()

        def change(job: Ad) -> Ad:
            changed: Ad = {**job, _OWNER: owner}
            for transform in self._transforms:
                outcome = transform.apply(changed, now=int(now), macros=dict(self._macros))
                if outcome is not None:
                    changed = outcome.ad
                    complaints.add(outcome.complaints)
            warnings.add(self._look(changed, now))
            del changed[_OWNER]
            return changed

        try:
            shared, names, table = transformed((ad, columns, rows), self._words, change, most=MOST_VALUES)
        except Unacceptable:
            raise
        except TooDifferentError as error:
            raise Unacceptable(
                f"too many of the jobs differ in what this access point's transforms and requirements look at ({error}): "
                "submit them as several clusters"
            ) from None
        except Exception as error:  # what a submitter wrote must not end the schedd
            raise Unacceptable(
                f"this access point's transforms and requirements cannot be applied to it ({type(error).__name__}); "
                "its administrator can see more in the log of the schedd"
            ) from error
        return Admitted(
            ad=shared, columns=names, rows=table, warnings=warnings.told, complaints=complaints.told
        )

    def _look(self, job: Ad, now: float) -> list[str]:
        seen, context = ClassAd.from_wire(job), evaluation.at(now)
        warnings: list[str] = []
        for each, expression, reason, is_warning in self._requirements:
            if evaluation.holds(expression, seen, context):
                continue
            said = _text(reason, seen, now) or f"the job does not meet {each.expression}"
            sentence = f"{said} (submit requirement {each.name})"
            if not evaluation.holds(is_warning, seen, context):
                raise Unacceptable(sentence)
            warnings.append(sentence)
        return warnings


class _Sentences:
    """The messages about very many jobs: the first ones, and the number of the others."""

    def __init__(self) -> None:
        self._first: dict[str, None] = {}
        self._more = 0

    def add(self, sentences: Sequence[str]) -> None:
        """Take some more, each once; of a long one the beginning."""
        for sentence in (each[:_LONGEST_SENTENCE] for each in sentences):
            if sentence in self._first:
                continue
            if len(self._first) < _MOST_SENTENCES:
                self._first[sentence] = None
            else:
                self._more += 1

    @property
    def told(self) -> list[str]:
        """All of them."""
        return [*self._first, *([f"and {self._more} more like these"] if self._more else [])]


def _text(expression: Node, ad: ClassAd, now: float) -> str:
    try:
        value = evaluate(expression, my=ad, context=evaluation.at(now))
    except ClassAdError:
        return ""
    return value if isinstance(value, str) else ""
