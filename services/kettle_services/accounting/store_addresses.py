"""Addresses of accounting stores."""

from urllib.parse import urlsplit


def check(url: str, credentials: str) -> str:
    """What is wrong with the address of a store; empty: nothing."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        return f"store_url is no URL: {error}"
    if parts.scheme not in {"http", "https"} or not host:
        return "store_url is none of http:// or https:// with a host"
    if parts.username or parts.password:
        return "store_url has a name or a password, which anybody could read: put them into a file, store_credentials"
    if credentials and parts.scheme == "http" and host not in {"127.0.0.1", "::1", "localhost"}:
        return "store_credentials would cross the network where everybody can read them: store_url must begin with https://"
    return ""
