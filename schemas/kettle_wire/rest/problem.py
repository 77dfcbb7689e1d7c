# ruff: noqa: S105 - codes, and no secrets
"""How the REST interface refuses: `application/problem+json` (RFC 9457)."""

from enum import StrEnum

import msgspec


class ProblemCode(StrEnum):
    """
    Why a request is refused; programs may rely on these, besides the codes of refused commands and tokens.
    """

    REQUEST_MALFORMED = "request.malformed"
    """It is no request of HTTP, or a line of it is too long."""
    TOKEN_ABSENT = "token.absent"
    """No token was shown."""
    TOKEN_IN_QUERY = "token.in_query"
    """A token or a secret stands in the address."""
    TOKEN_UNTRUSTED = "token.issuer_unknown"
    """The token is not the one of the private file, and no issuer is trusted."""
    CSRF = "csrf"
    """A request that came by cookie, and changes something, was not sent by a page of this gateway."""
    LINK_UNKNOWN = "link.unknown"
    """The login link was used already, is too old, or never was."""
    LOGIN_FAILED = "login.failed"
    """An issuer has not signed the person in, or not this browser."""
    NOT_PERMITTED = "not_permitted"
    """The person has not the level that the route takes, or the job is somebody else's."""
    PARAMETER_UNKNOWN = "parameter.unknown"
    """There is no such parameter."""
    PARAMETER_INVALID = "parameter.invalid"
    """A parameter has a value that it cannot have."""
    FILTER_INVALID = "filter.invalid"
    """The filter is no ClassAd expression."""
    ATTRIBUTE_UNKNOWN = "attribute.unknown"
    """No ad has an attribute of this name."""
    PAGE_INVALID = "page.invalid"
    """The page token is none of ours, or belongs to another question."""
    BODY_INVALID = "body.invalid"
    """The body is not what the route takes."""
    BODY_TYPE = "body.type"
    """The body has a media type that the route does not take."""
    BODY_TOO_LARGE = "body.too_large"
    """The body has too many bytes."""
    NOT_FOUND = "not_found"
    """There is no such thing."""
    METHOD = "method"
    """The path does not take this method."""
    AMBIGUOUS = "ambiguous"
    """Several access points have a job of this number."""
    COUNT = "count"
    """The request is about another number of jobs than it expects."""
    FILES_MISSING = "files.missing"
    """Files that jobs have have not been sent."""
    RANGE = "range"
    """The file has no such part."""
    HELD = "held"
    """The job is on hold."""
    NOT_WAITING = "not_waiting"
    """The job waits for no machine."""
    WORKFLOW_OVER = "workflow.over"
    """The workflow has ended."""
    NOT_RERUN = "workflow.not_rerun"
    """The workflow cannot be run again: it is not over, or its files are not where they can be read."""
    WORKFLOW_FAULTS = "workflow.faults"
    """The DAG file or the document has faults; `errors` has all of them."""
    CHANGED = "changed"
    """The job is not as it was when it was read."""
    KEY_REUSED = "idempotency_key.reused"
    """Another request had this Idempotency-Key."""
    NO_ROUTE = "ce.no_route"
    """No route of the compute entrypoint will take the job as it is; `errors` has the first clause of each that is not true."""
    NO_CONNECTION = "connection.none"
    """There is no connection of this person's to the bus."""
    TOO_SLOW = "too_slow"
    """The question was not answered in time."""
    BEHIND = "behind"
    """What was asked for at least is not there yet."""
    UNAVAILABLE = "unavailable"
    """Something that the answer needs does not answer."""
    TOO_MANY = "too_many"
    """There are too many requests."""


class FieldProblem(msgspec.Struct, frozen=True):
    """What is wrong with one part of a request."""

    pointer: str
    """
    Where: `/query/NAME`, `/path/NAME`, `/header/NAME`, or a JSON pointer into the body behind `/body`; in a DAG file `FILE:LINE`.
    """
    detail: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A refusal."""

    type: str
    """The page that explains it."""
    title: str
    status: int
    detail: str
    """One sentence: what, where, and what to do next."""
    code: str
    """Stable, for programs."""
    instance: str = ""
    """The path that was asked."""
    errors: list[FieldProblem] = []
    trace: str = ""
    """By which the request is found in the logs, and in the trace if it is part of one."""
