"""What iam is asked over HTTP: the names of its grants, and how its own tokens begin."""

from typing import Final

REFRESH_GRANT: Final = "refresh_token"
CLIENT_GRANT: Final = "client_credentials"
EXCHANGE_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
JOIN_GRANT: Final = "urn:kettle:params:oauth:grant-type:join-token"
GRANTS: Final = (REFRESH_GRANT, CLIENT_GRANT, EXCHANGE_GRANT, JOIN_GRANT)
ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type
JWT: Final = "urn:ietf:params:oauth:token-type:jwt"

TOKEN_REQUESTS: Final = "/v1/token-requests"  # noqa: S105 - a path
"""Where a token of HTCondor is asked for."""
COLLECT: Final = f"{TOKEN_REQUESTS}/collect"
"""Where it is collected when somebody has approved it."""

JOIN_PREFIX: Final = "kettle-join-1"
"""How a join token begins: `kettle-join-1.<id>.<secret>.<pin>`."""
REFRESH_PREFIX: Final = "kettle-refresh-1"
"""How a refresh token begins: `kettle-refresh-1.<session>.<secret>`."""


def join_token(token: str, secret: str, pin: str) -> str:
    """The text that a machine joins with."""
    return f"{JOIN_PREFIX}.{token}.{secret}.{pin}"


def token_id(text: str) -> str:
    """The id in the text that a machine joins with; empty if it is no such text."""
    match text.strip().split("."):
        case [prefix, token, _, _] if prefix == JOIN_PREFIX:
            return token
        case _:
            return ""
