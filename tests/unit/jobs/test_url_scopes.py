"""The rights that a job needs for its URLs."""

from kettle.jobs.needed_tokens import needed_tokens
from kettle.jobs.url_scopes import url_scopes


def scopes(permissions: str, **ad: str) -> list[str]:
    """What the token of a job with these commands is asked for."""
    (needed,) = needed_tokens({"OAuthServicesNeeded": "kettle", "OAuthPermissions_kettle": permissions, **ad})
    return needed.scopes


def test_no_more_than_the_files_that_it_names() -> None:
    """
    To read what it fetches, to create what it sends; local files, and methods that show no token, ask for nothing.
    """
    ad = {
        "TransferInput": "local.dat, root://eos//data/a%20b?x=1, https://h/b/../c, http://h/plain, root://eos//data/d",
        "TransferOutputRemaps": "out = davs://h/results/out; log = /home/ada/log",
        "OutputDestination": "https://h/all",
    }
    assert [
        "storage.read:/c", "storage.read:/data/d", "storage.create:/results/out", "storage.create:/all",
    ] == url_scopes(ad)  # fmt: skip
    assert ["storage.read:/x", "storage.read:/c"] == scopes(
        "storage.read:/x, urls", TransferInput="https://h/c"
    )


def test_many_files_are_asked_for_by_their_directories() -> None:
    """A token has to fit into a header."""
    listed = ", ".join(f"root://eos//data/run{number % 3}/{number}" for number in range(120))
    assert [f"storage.read:/data/run{number}" for number in range(3)] == url_scopes({"TransferInput": listed})


def test_without_such_urls_nothing_is_given() -> None:
    """
    No permissions would mean all that the administrator gives; the word itself is none that anybody gives.
    """
    assert ["urls"] == scopes("urls", TransferInput="local.dat")
    assert ["storage.read:/a"] == scopes("storage.read:/a", TransferInput="https://h/c")
