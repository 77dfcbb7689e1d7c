"""The working set of iam's shard is what its events come to, as `kettle log check` sees it."""

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.storage import PgWorkingSet
from kettle.testing.services import eventually
from kettle_services.cli.log.folds import identity_fold
from kettle_wire.events import decode

from .conftest import Office


async def test_the_working_set_is_the_fold_of_the_log(office: Office) -> None:
    """Also where streams ended of which nothing is kept, and where a name was free and taken again."""
    iam = office.administrator
    await iam.ban("user:eve")
    await iam.unban("user:eve")
    await iam.ban("user:eve", lifetime=0.2)
    made = await iam.create_join_token(max_uses=2)
    for name in ("n1", "n2", "n3"):
        await office.join(made.token, name, KeyPair.new(Kind.USER).public)
    await iam.remove_worker("n1")
    session = await iam.open_session()
    await iam.revoke_token(session.made.session)
    token = await iam.issue_token(lifetime=6.0)  # not over before it is revoked
    await office.post("/v1/revoke", {"token": token.token})

    async def over() -> bool:
        return {"token.expired", "ban.lifted"} <= {act.what for act in await office.audit()}

    await eventually(over)
    working_set = PgWorkingSet(office.backend.log.database)

    async def saved() -> bool:
        head = await office.backend.log.tenure("identity")
        return head is not None and (await working_set.load("identity"))[0] == head.frame

    await eventually(saved)
    fold, rows = identity_fold("identity"), dict[str, tuple[int, bytes]]()
    versions = dict[str, int]()
    async for frame in office.backend.log.read("identity"):
        for entry in frame.entries:
            assert entry.version == versions.get(entry.stream, 0) + 1
            versions[entry.stream] = entry.version
            for stream, state in fold(entry.stream, decode(entry.data), frame.at):
                if state is None:
                    rows.pop(stream)
                else:
                    rows[stream] = (entry.version, state)
    stored = (await working_set.load("identity"))[1]
    assert rows == {row.stream: (row.version, row.state) for row in stored}
    assert not [stream for stream in rows if stream.startswith(("session/", "token/"))]
