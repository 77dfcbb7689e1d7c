"""What a token may say that is made from another."""

import pytest

from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.scopes import covers, narrowed


@pytest.mark.parametrize(
    ("held", "asked", "covered"),
    [
        ("condor:/WRITE", "condor:/READ", True),
        ("condor:/READ", "condor:/WRITE", False),
        ("condor:/ADMINISTRATOR", "condor:/WRITE", True),
        ("storage.read:/foo/bar", "storage.read:/foo/bar/x", True),
        ("storage.read:/foo/bar", "storage.read:/foo/bargain", False),
        ("storage.read:/foo/bar", "storage.read:/foo", False),
        ("storage.read:/foo", "storage.read:/foo/../bar", False),
        ("storage.read:/", "storage.read:/anything", True),
        ("storage.modify:/a", "storage.create:/a/b", True),
        ("storage.create:/a", "storage.modify:/a/b", False),
        ("storage.stage:/a", "storage.read:/a", True),
        ("compute.read", "compute.create", False),
        ("compute.read", "compute.read", True),
    ],
)
def test_a_scope_covers_itself_and_less(held: str, asked: str, *, covered: bool) -> None:
    """Paths are compared segment by segment."""
    assert covered == covers(held, asked)


def test_nothing_is_added() -> None:
    """Without a wish all that is held is given; one scope too many refuses the whole wish."""
    assert ("a", "b") == narrowed([], ["a", "b"], whose="the token")
    with pytest.raises(Denied) as caught:
        narrowed(["a", "c"], ["a", "b"], whose="the token")
    assert (Code.TOKEN_SCOPE, 400) == (caught.value.code, caught.value.status)
