"""Texts that are no token, or that two readers could read in two ways."""

import json
from base64 import urlsafe_b64encode

import pytest

from kettle.auth.tokens.checking.parsing import MOST_BYTES, parse
from kettle.auth.tokens.verified import TokenError, quoted


def encoded(data: bytes | str) -> str:
    return urlsafe_b64encode(data if isinstance(data, bytes) else data.encode()).rstrip(b"=").decode()


def text(claims: bytes | str, header: bytes | str = '{"alg":"ES256"}', signature: bytes = b"sig") -> str:
    return f"{encoded(header)}.{encoded(claims)}.{encoded(signature)}"


def test_a_token_is_taken_apart() -> None:
    """Header, claims and signature come out, with the bytes that were signed."""
    token = text('{"sub":"ada"}')
    parsed = parse(token)
    assert ({"alg": "ES256"}, {"sub": "ada"}, b"sig") == (parsed.header, parsed.claims, parsed.signature)
    assert token.rpartition(".")[0].encode() == parsed.signed


@pytest.mark.parametrize(
    "token",
    [
        "",
        "abc",
        "a.b",
        "a.b.c.d.e",
        "..",
        text("[]"),
        text("null"),
        text("{"),
        text('{"sub": "a"} {}'),
        text('{"exp": NaN}'),
        text('{"exp": Infinity}'),
        text('{"sub": "a", "sub": "b"}'),
        text('{"deep": {"sub": "a", "sub": "b"}}'),
        text('{"sub": "\\ud800"}'),
        text(b'{"sub": "\xff"}'),
        text("{}", header="[]"),
        text("{}", header='{"alg": "none", "alg": "ES256"}'),
        text('{"a": ' + "[" * 5000 + "]" * 5000 + "}"),
        text('{"a": ' + '{"a":' * 1500 + "1" + "}" * 1500 + "}"),
        text('{"exp": 1' + "0" * 5000 + "}"),
        text("{}") + "=",
        text("{}") + "\n",
        text("{}").replace(".", ". ", 1),
        text('{"a":"?>?"}').replace("_", "/"),
        f"{encoded('{}')}.{encoded('{}')}.é",
        f"{encoded('{}')[:-1]}x.{encoded('{}')}.{encoded('ab')[:-1]}J",
    ],
)
def test_what_is_no_token_is_malformed(token: str) -> None:
    """It is refused with its code and a sentence on one line, no matter how it is broken."""
    with pytest.raises(TokenError) as caught:
        parse(token)
    assert caught.value.code == "token.malformed"
    assert "\n" not in str(caught.value)
    assert str(caught.value)


def test_another_spelling_of_a_signature_is_refused() -> None:
    """Bits behind the end of base64 are zero, so that nobody makes a second token of a revoked one."""
    good = text("{}", signature=b"a")
    assert good.endswith("YQ")
    parse(good)
    with pytest.raises(TokenError):
        parse(good[:-1] + "R")


def test_a_long_token_is_refused_before_it_is_read() -> None:
    """The limit is one of bytes, and tokens up to it are read."""
    frame = len(text('{"a":""}'))
    longest = text('{"a":"' + "x" * ((MOST_BYTES - frame) * 3 // 4 - 8) + '"}')
    assert MOST_BYTES - 32 < len(longest) <= MOST_BYTES
    parse(longest)
    with pytest.raises(TokenError) as caught:
        parse("x" * (MOST_BYTES + 1))
    assert caught.value.code == "token.size"


def test_what_a_stranger_wrote_is_quoted() -> None:
    """Nothing in it is obeyed by a terminal or begins a line of a log, and it is cut."""
    assert r"'\x1b[2J\nroot'" == quoted("\x1b[2J\nroot")
    assert len(quoted("x" * 5000)) < 100
    assert "'list'" == quoted([1])
    assert json.dumps("zo") not in quoted("zo")
