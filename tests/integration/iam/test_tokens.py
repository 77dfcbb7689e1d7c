"""Tokens of people and programs, over bus and HTTP."""

import time
from typing import Any

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata  # type: ignore[import-untyped]
from joserfc import jwt
from joserfc.jwk import KeySet

from kettle.client.errors import CommandRefusedError
from kettle_wire.commands.iam import QueryAudit
from kettle_wire.events import AccessDenied, BanSet, SessionClosed, TokenIssued, decode
from kettle_wire.identity import user

from .conftest import ACCESS_TOKEN, EXCHANGE, Office


def refresh(token: str, **more: str) -> dict[str, str]:
    return {"grant_type": "refresh_token", "refresh_token": token, **more}


def exchange(token: str, **more: str) -> dict[str, str]:
    return {
        "grant_type": EXCHANGE,
        "subject_token": token,
        "subject_token_type": ACCESS_TOKEN,
        **more,
    }


async def recorded(office: Office, kind: type[Any]) -> list[Any]:
    frames = [frame async for frame in office.backend.log.read("identity")]
    events = [decode(entry.data) for frame in frames for entry in frame.entries]
    return [event for event in events if isinstance(event, kind)]


async def test_the_metadata_are_what_oauth_says(office: Office) -> None:
    """Authlib accepts the metadata, and the issuer is where they were found."""
    status, found = await office.get("/.well-known/oauth-authorization-server")
    assert (200, office.url) == (status, found["issuer"])
    AuthorizationServerMetadata(found | {"authorization_endpoint": f"{office.url}/none"}).validate()
    assert found == (await office.get("/.well-known/openid-configuration"))[1]


async def test_a_token_is_checked_with_the_published_keys(office: Office) -> None:
    """Who has only the keys can check an access token; its record has the id, and not the token."""
    made = await office.administrator.issue_token()
    keys = KeySet.import_key_set((await office.get("/jwks.json"))[1])  # type: ignore[arg-type]
    token = jwt.decode(made.token, keys, algorithms=["ES256"])
    assert ("at+jwt", made.id, office.url) == (
        token.header["typ"],
        token.claims["jti"],
        token.claims["aud"],
    )
    assert "condor:/READ condor:/WRITE" == token.claims["scope"]
    [issued] = await recorded(office, TokenIssued)
    assert (made.id, "bus") == (issued.token, issued.grant)
    assert made.token not in str(issued)


async def test_whoami_names_the_rule_of_each_right(office: Office) -> None:
    """Over HTTP a right comes from a scope of the token, over the bus from the person."""
    made = await office.administrator.issue_token(scopes=["condor:/WRITE"])
    status, who = await office.get("/v1/whoami", made.token)
    assert (200, ["READ", "WRITE"]) == (status, [right["level"] for right in who["levels"]])
    assert {"the scope condor:/WRITE of the token"} == {right["because"] for right in who["levels"]}
    on_bus = await office.administrator.whoami()
    assert ["READ", "WRITE", "ADMINISTRATOR"] == [right.level for right in on_bus.levels]

    status, answer = await office.get("/v1/explain?action=iam.set_ban", made.token)
    assert (200, False, "ADMINISTRATOR") == (status, answer["allowed"], answer["level"])
    assert "a token with the scope condor:/ADMINISTRATOR" == answer["missing"]
    assert (await office.get("/v1/explain?action=schedd.submit", made.token))[1]["allowed"]
    status, unknown = await office.get("/v1/explain?action=schedd.submitt", made.token)
    assert (404, "action.unknown") == (status, unknown["code"])
    assert "schedd.submit" in unknown["detail"]


async def test_a_refresh_token_is_exchanged_for_the_next(office: Office) -> None:
    """
    Each use gives a new one; the one before is accepted once more, because its answer may have been lost.
    """
    opened = await office.administrator.open_session(note="laptop")
    status, first = await office.post("/v1/token", refresh(opened.token))
    assert (200, "Bearer") == (status, first["token_type"])
    assert first["refresh_token"] != opened.token
    assert 200 == (await office.post("/v1/token", refresh(opened.token)))[0]
    status, narrow = await office.post("/v1/token", refresh(opened.token, scope="condor:/ADMINISTRATOR"))
    assert (400, "token.unknown", "invalid_grant") == (status, narrow["code"], narrow["error"])
    [shown] = await office.administrator.sessions()
    assert ("laptop", opened.made.session) == (shown.note, shown.session)
    await office.administrator.revoke_token(opened.made.session)
    assert "token.unknown" == (await office.post("/v1/token", refresh(first["refresh_token"])))[1]["code"]


async def test_exchange_only_narrows(office: Office) -> None:
    """
    Escalation by exchange: neither more scopes nor another audience nor a longer life than the token has.
    """
    made = await office.administrator.issue_token(scopes=["condor:/WRITE"], lifetime=60.0)
    status, narrow = await office.post("/v1/token", exchange(made.token, scope="condor:/READ"))
    assert (200, "condor:/READ", ACCESS_TOKEN) == (status, narrow["scope"], narrow["issued_token_type"])
    assert narrow["expires_in"] <= 60
    status, more = await office.post("/v1/token", exchange(narrow["access_token"], scope="condor:/WRITE"))
    assert (400, "invalid_scope") == (status, more["error"])
    status, other = await office.post("/v1/token", exchange(made.token, audience="https://elsewhere"))
    assert (400, "invalid_target") == (status, other["error"])


async def test_what_was_exchanged_ends_with_its_session_and_its_parents(office: Office) -> None:
    """An exchange, or two of them, take a token neither out of its session nor away from who withdraws it."""
    opened = await office.administrator.open_session()
    status, first = await office.post("/v1/token", refresh(opened.token))
    assert 200 == status
    washed = first["access_token"]
    for _ in range(2):
        washed = (await office.post("/v1/token", exchange(washed)))[1]["access_token"]
    assert 200 == (await office.get("/v1/whoami", washed))[0]
    await office.administrator.revoke_token(opened.made.session)
    for each in (first["access_token"], washed):
        status, refused = await office.get("/v1/whoami", each)
        assert (401, "token.revoked") == (status, refused["code"])
        assert "token.revoked" == (await office.post("/v1/token", exchange(each)))[1]["code"]

    made = await office.administrator.issue_token()
    derived = (await office.post("/v1/token", exchange(made.token)))[1]["access_token"]
    derived = (await office.post("/v1/token", exchange(derived)))[1]["access_token"]
    assert (200, {}) == await office.post("/v1/revoke", {"token": made.token})
    status, refused = await office.get("/v1/whoami", derived)
    assert (401, "token.revoked") == (status, refused["code"])


async def test_a_client_exchanges_by_its_own_rules(office: Office) -> None:
    """
    Another audience only from the client's list, no more scopes than the client has, and only for a client that may exchange.
    """
    iam = office.administrator
    made = await iam.issue_token(scopes=["condor:/WRITE"])
    secret = await iam.register_client(
        "transfer", owner="ada", scopes=["condor:/READ"], audiences=["https://storage"], exchanges=True
    )
    client = {"client_id": "transfer", "client_secret": secret}
    wanted = exchange(made.token, scope="condor:/READ", audience="https://storage")
    status, narrow = await office.post("/v1/token", wanted | client)
    assert (200, "condor:/READ") == (status, narrow["scope"])
    status, refused = await office.get("/v1/whoami", narrow["access_token"])
    assert (401, "token.audience") == (status, refused["code"])
    status, refused = await office.post("/v1/token", exchange(made.token, scope="condor:/WRITE") | client)
    assert (400, "token.scope") == (status, refused["code"])
    plain = {
        "client_id": "robot",
        "client_secret": await iam.register_client("robot", owner="ada", scopes=["condor:/READ"]),
    }
    assert "client.exchange" == (await office.post("/v1/token", exchange(made.token) | plain))[1]["code"]


async def test_a_client_has_tokens_about_its_owner(office: Office) -> None:
    """Of its scopes and no others; introspection says what they are; a removed client gets none."""
    iam = office.administrator
    secret = await iam.register_client("robot", owner="ada", scopes=["condor:/READ"], lifetime=30.0)
    form = {"grant_type": "client_credentials", "client_id": "robot", "client_secret": secret}
    status, got = await office.post("/v1/token", form)
    assert (200, "condor:/READ") == (status, got["scope"])
    assert got["expires_in"] <= 30
    assert "invalid_scope" == (await office.post("/v1/token", form | {"scope": "condor:/WRITE"}))[1]["error"]
    about = {"token": got["access_token"], "client_id": "robot", "client_secret": secret}
    described = (await office.post("/v1/introspect", about))[1]
    assert (True, "ada", "robot") == (described["active"], described["sub"], described["client_id"])
    assert {"active": False} == (await office.post("/v1/introspect", about | {"token": "x.y.z"}))[1]
    assert 401 == (await office.post("/v1/introspect", {"token": got["access_token"]}))[0]
    await iam.remove_client("robot")
    status, refused = await office.post("/v1/token", form)
    assert (401, "invalid_client") == (status, refused["error"])


async def test_a_client_keeps_its_secret_until_another_is_wanted(office: Office) -> None:
    """
    A name that is taken is refused unless it is said that it is to be replaced; so is a scope that is misspelt.
    """
    iam = office.administrator

    async def works(secret: str) -> bool:
        form = {"grant_type": "client_credentials", "client_id": "robot", "client_secret": secret}
        return (await office.post("/v1/token", form))[0] == 200

    first = await iam.register_client("robot", owner="ada", scopes=["condor:/READ"])
    with pytest.raises(CommandRefusedError, match="--replace"):
        await iam.register_client("robot", owner="eve", scopes=["condor:/READ"])
    assert await works(first)
    second = await iam.register_client("robot", owner="ada", scopes=["condor:/READ"], replace=True)
    assert (False, True) == (await works(first), await works(second))
    with pytest.raises(CommandRefusedError, match="condor:/WRITE"):
        await iam.register_client("other", owner="ada", scopes=["condor:/WRIT"])


async def test_what_was_mistyped_is_no_withdrawal_and_what_was_not_is_no_alarm(office: Office) -> None:
    """
    An administrator hears that there is no such token, and nothing that he may do is recorded as refused.
    """
    iam = office.administrator
    with pytest.raises(CommandRefusedError, match="no token has such an id as nosuch"):
        await iam.revoke_token("nosuch")
    made = await iam.issue_token()
    await iam.revoke_token(made.id)
    assert "token.revoked" == (await office.get("/v1/whoami", made.token))[1]["code"]
    async with office.backend.bus(user("eve")) as bus:
        eve = office.asked_by(bus)
        with pytest.raises(CommandRefusedError, match="nosuch is no session of eve"):
            await eve.revoke_token("nosuch")
    assert ["/v1/whoami"] == [each.action for each in await recorded(office, AccessDenied)]


async def test_a_withdrawn_token_is_not_accepted(office: Office) -> None:
    """Who has a token can end it; the answer is the same for what is none."""
    made = await office.administrator.issue_token()
    assert 200 == (await office.get("/v1/whoami", made.token))[0]
    assert (200, {}) == await office.post("/v1/revoke", {"token": made.token})
    assert (200, {}) == await office.post("/v1/revoke", {"token": "nothing"})
    status, refused = await office.get("/v1/whoami", made.token)
    assert (401, "token.revoked") == (status, refused["code"])


async def test_a_ban_counts_at_once(office: Office) -> None:
    """It ends the sessions of the person, and no token of hers is accepted any more, until it is lifted."""
    iam = office.administrator
    me = (await iam.whoami()).subject
    made, opened = await iam.issue_token(), await iam.open_session()
    await iam.ban(f"user:{me}", reason="test")
    status, refused = await office.get("/v1/whoami", made.token)
    assert (403, "user.banned") == (status, refused["code"])
    assert "test" in refused["detail"]
    assert "token.unknown" == (await office.post("/v1/token", refresh(opened.token)))[1]["code"]
    assert f"{me} is banned by {me}: test" == (await iam.whoami()).banned
    [ban] = await recorded(office, BanSet)
    [closed] = await recorded(office, SessionClosed)
    assert ("banned", ban.at) == (closed.why, closed.at)
    await iam.unban(f"user:{me}")
    assert 200 == (await office.get("/v1/whoami", made.token))[0]


async def test_the_audit_finds_who_and_what(office: Office) -> None:
    """By person, by type and by time; the newest if there are more than wanted."""
    iam = office.administrator
    await iam.ban("user:eve")
    await iam.issue_token()
    middle = time.time()
    await iam.unban("user:eve")
    by_person = await iam.audit(QueryAudit(who="eve"))
    assert ["ban.set", "ban.lifted"] == [each.what for each in by_person.acts]
    assert ["ban.lifted"] == [each.what for each in (await iam.audit(QueryAudit(since=middle))).acts]
    newest = await iam.audit(QueryAudit(limit=1))
    assert (["ban.lifted"], False) == ([each.what for each in newest.acts], newest.complete)
    assert [] == await recorded(office, AccessDenied)
