"""Who sends a command, as its subject says."""

import pytest

from kettle_wire.identity import Identity, bearer, daemon, user, visitor, worker
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")


@pytest.mark.parametrize(
    "identity",
    [user("ada"), bearer("ada"), bearer("ada.x@site*"), daemon("schedd", "ap1"), worker("host.example"), visitor("ap@home")],
    ids=str,
)  # fmt: skip
def test_a_subject_says_who_sends(identity: Identity) -> None:
    """And with which kind of credential: nobody else may publish there, or hears the answers."""
    subject = SUBJECTS.command("schedd", "ap1", "submit", identity.token)
    assert identity == Identity.from_subject(subject)
    assert identity.inbox.endswith(identity.token)


def test_who_has_shown_a_token_is_the_same_person_and_another_caller() -> None:
    """What is a person's is that person's by whatever was shown; what may be done is another question."""
    assert bearer("ada") != user("ada")
    assert bearer("ada").token != user("ada").token
    assert (True, True, False) == (
        bearer("ada").is_person("ada"),
        user("ada").is_person("ada"),
        user("bob").is_person("ada"),
    )
    assert not daemon("ada").is_person("ada")
