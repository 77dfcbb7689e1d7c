"""Where a program finds its token."""

import os
from pathlib import Path

import pytest

from kettle.auth.tokens.bearer import NoTokenError, discovered


def put(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_first_place_wins(tmp_path: Path) -> None:
    """
    A variable, a file that a variable names, the runtime directory, and the temporary one, in this order.
    """
    user = os.getuid()
    runtime, temporary = tmp_path / "run", tmp_path / "tmp"
    named = put(tmp_path / "named", "of-file\n", 0o644)
    put(runtime / f"bt_u{user}", " of-runtime \n")
    put(temporary / f"bt_u{user}", "of-temporary")
    environ = {
        "BEARER_TOKEN": " of-variable ",
        "BEARER_TOKEN_FILE": str(named),
        "XDG_RUNTIME_DIR": str(runtime),
    }
    for name, expected in (
        ("BEARER_TOKEN", "of-variable"),
        ("BEARER_TOKEN_FILE", "of-file"),
        ("XDG_RUNTIME_DIR", "of-runtime"),
    ):
        assert expected == discovered(environ, user, temporary=str(temporary))
        del environ[name]
    assert "of-temporary" == discovered({"BEARER_TOKEN": "  "}, user, temporary=str(temporary))
    assert discovered({"XDG_RUNTIME_DIR": str(tmp_path)}, user, temporary=str(tmp_path)) is None


@pytest.mark.parametrize("text", ["", "\n", "two\ntokens", "two tokens", "x" * 20_000])
def test_a_place_that_was_named_and_has_no_token(tmp_path: Path, text: str) -> None:
    """No other place is tried instead, and what is in it is not shown."""
    put(tmp_path / f"bt_u{os.getuid()}", "other")
    named = put(tmp_path / "named", text)
    with pytest.raises(NoTokenError, match="named has no token in it") as caught:
        discovered({"BEARER_TOKEN_FILE": str(named)}, os.getuid(), temporary=str(tmp_path))
    assert "two" not in str(caught.value)
    with pytest.raises(NoTokenError, match="No such file"):
        discovered({"BEARER_TOKEN_FILE": str(tmp_path / "none")}, os.getuid(), temporary=str(tmp_path))


def test_a_token_that_another_may_have_put_there_is_not_used(tmp_path: Path) -> None:
    """
    Everybody may put files into the temporary directory: with such a token one would work for somebody else.
    """
    user = os.getuid()
    path = put(tmp_path / f"bt_u{user}", "token", 0o666)
    with pytest.raises(NoTokenError, match="somebody else may have written it"):
        discovered({}, user, temporary=str(tmp_path))
    path.unlink()
    path.symlink_to(put(tmp_path / "other", "token"))
    with pytest.raises(NoTokenError, match="no token that can be read"):
        discovered({}, user, temporary=str(tmp_path))
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(NoTokenError, match="somebody else"):
        discovered({}, user, temporary=str(tmp_path))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make accounts")
def test_nor_one_that_belongs_to_another(tmp_path: Path) -> None:
    """Whose file it is decides, not who may read it."""
    path = put(tmp_path / "bt_u1000", "token")
    os.chown(path, 1001, 1001)
    with pytest.raises(NoTokenError, match="somebody else"):
        discovered({}, 1000, temporary=str(tmp_path))
    os.chown(path, 1000, 1000)
    assert "token" == discovered({}, 1000, temporary=str(tmp_path))
