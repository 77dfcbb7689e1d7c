"""What a server that runs is told when somebody is not trusted any more."""

import msgspec

from kettle.auth.trust.server import Statements
from kettle.embedded.nats_statements import accounts_to_tell

BEFORE = Statements("operator", "S", {"S": "system", "A": "one", "B": "two"}, "A")


def test_only_what_is_new_is_said() -> None:
    """The server builds an account again of which it is told something."""
    after = msgspec.structs.replace(BEFORE, accounts={"S": "system", "A": "one", "B": "three"})
    assert {"B": "three"} == accounts_to_tell(BEFORE, after)
    assert {} == accounts_to_tell(BEFORE, BEFORE)


def test_what_is_no_accounts_cannot_be_told() -> None:
    """
    An account that was not there, or is not any more, and what the operator says of itself: for these it reads everything.
    """
    for after in (
        msgspec.structs.replace(BEFORE, accounts={**BEFORE.accounts, "C": "four"}),
        msgspec.structs.replace(BEFORE, accounts={"S": "system", "A": "one"}),
        msgspec.structs.replace(BEFORE, operator="another"),
        msgspec.structs.replace(BEFORE, streams="B"),
    ):
        assert accounts_to_tell(BEFORE, after) is None
