"""What who has shown a token may not ask for on the bus."""

from typing import Any

import pytest

from kettle.auth.bus_permissions import BEARER, BEARING_ADMINISTRATOR, permissions
from kettle_wire.commands.gateway import MAKE_ACCESS, MAKE_LOGIN_LINK
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import bearer, user
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")


@pytest.mark.parametrize("endpoint", [MAKE_ACCESS, MAKE_LOGIN_LINK])
@pytest.mark.parametrize("role", [BEARER, BEARING_ADMINISTRATOR])
def test_a_token_does_not_become_the_account(endpoint: Endpoint[Any, Any], role: str) -> None:
    """What the gateway gives to an account has all that the account may, and outlives what was shown."""
    asked = SUBJECTS.commands_by(bearer("ada").token, endpoint.role, endpoint.verb)
    assert asked not in permissions(role, SUBJECTS, bearer("ada"))[0]
    own = SUBJECTS.commands_by(user("ada").token, endpoint.role, endpoint.verb)
    assert own in permissions("user", SUBJECTS, user("ada"))[0]
