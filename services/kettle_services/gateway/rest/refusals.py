"""How a request over HTTP is refused."""

from collections.abc import Mapping, Sequence
from typing import Final

from kettle_wire.rest.problem import FieldProblem, ProblemCode


class RequestRefused(Exception):  # noqa: N818 - what is refused is a request
    """A request that is refused, with the status that HTTP has for it; the text is one sentence."""

    def __init__(
        self,
        status: int,
        code: str,
        sentence: str,
        *,
        errors: Sequence[FieldProblem] = (),
        retry_after: float = 0.0,
        challenge: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`retry_after`: seconds; `challenge`: for `WWW-Authenticate`; `headers`: more of the answer."""
        super().__init__(sentence)
        self.status: Final = status
        self.code: Final = code
        self.errors: Final = tuple(errors)
        self.retry_after: Final = retry_after
        self.challenge: Final = challenge
        self.headers: Final = dict(headers or {})


def refused_field(
    pointer: str, sentence: str, *, code: str = ProblemCode.PARAMETER_INVALID, status: int = 400
) -> RequestRefused:
    """The refusal of one part of a request."""
    return RequestRefused(status, code, sentence, errors=[FieldProblem(pointer, sentence)])


class NotModified(Exception):  # noqa: N818 - no error
    """The asker has what would be answered."""

    def __init__(self, etag: str) -> None:
        super().__init__(etag)
        self.etag: Final = etag
