"""
What can go wrong with a ClassAd.

    ClassAdError
    ├── ClassAdParseError     the text is no expression, or no ad
    ├── EvaluationFailed      the evaluation gave up: too deep, too long, or an argument no function can serve
    └── NotRepresentable      a value that the chosen text form cannot carry

The ClassAd *value* ``error`` is none of these: it is data, the result of a sound evaluation.
"""


class ClassAdError(Exception):
    """Whatever this library raises."""


class ClassAdParseError(ClassAdError, ValueError):
    """
    The text does not follow the grammar.

    `at` is the offset of the offending character, `text` what was read.
    """

    def __init__(self, sentence: str, *, text: str, at: int) -> None:
        super().__init__(f"{sentence}, at character {at} of {_excerpt(text)}")
        self.sentence = sentence
        self.text = text
        self.at = at


class EvaluationFailed(ClassAdError):  # noqa: N818 - it names what happened; the value `error` is something else
    """
    The evaluation has no value, not even ``error``.

    A policy expression that fails counts as not true, an attribute that fails as absent.
    """


class NotRepresentable(ClassAdError, ValueError):  # noqa: N818 - the same
    """A text form has no way to write this so that it reads back as itself."""


def _excerpt(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "...")
