"""What a service says that we may do, as far as our token goes."""

from kettle.client.connections.credentials import HeldRight, Holder
from kettle.client.held_rights import limited
from kettle_wire.commands.rights import RightAt, Rights


def test_a_token_takes_rights_away_and_gives_none() -> None:
    """
    A level that the token lacks is not ours whatever the service says, and a refusal of the service stays as it is.
    """
    said = [
        RightAt(level="READ", allowed=True, rule="everybody's"),
        RightAt(level="WRITE", command="submit", allowed=True, rule="line 3"),
        RightAt(level="READ", command="query_jobs", allowed=False, rule="line 4", missing="another name"),
        RightAt(level="ADMINISTRATOR", allowed=False, rule="no rule gives it", missing="a line"),
    ]
    holder = Holder(subject="ada", levels=[HeldRight("READ", "the scope condor:/READ of the token")])
    left = limited(Rights(identity="ada@pool", service="schedd", rights=said), holder, "BEARER_TOKEN")
    assert [said[0], *said[2:]] == [right for right in left.rights if right.level != "WRITE"]
    assert [
        RightAt(
            level="WRITE",
            command="submit",
            allowed=False,
            rule="line 3",
            missing="the token of BEARER_TOKEN is limited to READ",
        )
    ] == [right for right in left.rights if right.level == "WRITE"]
