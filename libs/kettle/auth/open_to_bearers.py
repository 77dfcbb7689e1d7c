"""
What who has shown a token may not ask for, although an account of the pool may: what outlives the token.
"""

from typing import Any, Final

from kettle_wire.commands.gateway import MAKE_ACCESS, MAKE_LOGIN_LINK
from kettle_wire.commands.iam import (
    ISSUE_ANY_TOKEN,
    ISSUE_TOKEN,
    OPEN_ANY_SESSION,
    OPEN_SESSION,
    REGISTER_CLIENT,
)
from kettle_wire.commands.own_machines import CREATE_OWN_JOIN_TOKEN
from kettle_wire.commands.token_requests import (
    APPROVE_OWN_TOKEN_REQUEST,
    APPROVE_TOKEN_REQUEST,
    AUTO_APPROVE,
    FETCH_ANY_TOKEN,
    FETCH_TOKEN,
)
from kettle_wire.endpoint import Endpoint

OUTLIVES_A_TOKEN: Final[frozenset[Endpoint[Any, Any]]] = frozenset(
    {
        APPROVE_OWN_TOKEN_REQUEST,
        APPROVE_TOKEN_REQUEST,
        AUTO_APPROVE,
        CREATE_OWN_JOIN_TOKEN,
        FETCH_ANY_TOKEN,
        FETCH_TOKEN,
        ISSUE_ANY_TOKEN,
        ISSUE_TOKEN,
        MAKE_ACCESS,
        MAKE_LOGIN_LINK,
        OPEN_ANY_SESSION,
        OPEN_SESSION,
        REGISTER_CLIENT,
    }
)
"""
Machines of one's own are let in by `create_bearers_join_token`, which takes the token itself, so that they go with it.
"""
