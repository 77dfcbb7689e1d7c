"""
The rules of a site for data: through which cache a machine fetches the files that jobs name by URL.

    root://*: cache=root://xcache.site:1094, fallback=origin
    https://data.example.org/*: cache=http://squid.site:3128
    s3://*: cache=machine

The first rule whose pattern fits a URL counts.  Rules are for what Kettle's own plugins fetch; a site's own plugins know
their caches themselves, and what is sent goes to its place directly.
"""

import fnmatch
import re
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from kettle.transfer.file_lists import scheme_of, shown, without_secrets

Form = Literal["path", "url", "proxy", "machine", "none"]
"""
How a cache is asked: for the same path, for the whole URL as a path, as a proxy of the web; `machine`: the machine's own cache alone;
`none`: no cache, the machine's neither.
"""

_RULE: Final = re.compile(r"\s*(?P<pattern>\S+):\s+(?P<words>\S.*)", re.DOTALL)
_ROOT: Final = frozenset({"root", "roots", "xroot", "xroots"})
_WEB: Final = frozenset({"http", "https"})
_FORMS: Final[tuple[tuple[frozenset[str], frozenset[str], tuple[Form, ...]], ...]] = (
    (_ROOT, _ROOT, ("path", "url")),
    (_WEB, frozenset({"http"}), ("proxy", "path", "url")),
    (_WEB, frozenset({"https"}), ("path", "url")),
    (frozenset({"s3", "gs"}), frozenset({"http"}), ("proxy",)),
)
"""Of methods of URLs and of caches, how such a cache may be asked; the usual way first."""
_KEYS: Final = ("cache", "form", "fallback", "programs")
_OWN: Final[dict[str, Form]] = {"machine": "machine", "none": "none"}


class DataRuleError(ValueError):
    """A rule that makes no sense; the message says which, and what to write."""


class DataRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule."""

    pattern: str
    """Of URLs, with `*` and `?`."""
    cache: str = ""
    """URL of the cache; empty: `form` says all."""
    form: Form
    fallback: bool = True
    """What the cache does not give comes from the server that the URL names."""
    programs: bool = False
    """Programs of jobs read through it as well."""

    def fits(self, url: str) -> bool:
        """Whether it is for this URL; methods and hosts are the same in any case."""
        return fnmatch.fnmatchcase(_lowered(shown(url)), self.pattern)

    def address(self, url: str) -> str:
        """Where the cache has a file; empty: it is asked for by its own URL, or there is no cache."""
        base = self.cache.rstrip("/")
        if self.form == "url":
            return f"{base}//{url}"
        if self.form == "path":
            _, _, rest = url.partition("://")
            _, _, path = rest.partition("/")
            return f"{base}/{path}"
        return ""


def rule_for(rules: Sequence[DataRule], url: str) -> DataRule | None:
    """The rule for a URL; None: there is none."""
    return next((rule for rule in rules if rule.fits(url)), None)


def read_rules(texts: Sequence[str]) -> list[DataRule]:
    """
    Read the rules of a machine.

    Raises:
        DataRuleError: one of them makes no sense; a password in it is not repeated.
    """
    try:
        return [_read(text) for text in texts]
    except DataRuleError as error:
        raise DataRuleError(without_secrets(str(error))) from None


def _read(text: str) -> DataRule:
    found = _RULE.fullmatch(text)
    if found is None or not scheme_of(found["pattern"]):
        raise DataRuleError(
            f"{text!r} is no rule for data: write PATTERN: cache=URL, for example root://*: cache=root://xcache.site:1094"
        )
    pattern, said = _lowered(found["pattern"]), dict[str, str]()
    for word in found["words"].split(","):
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or key not in _KEYS or not value or key in said:
            raise DataRuleError(
                f"{text!r}: {word.strip()!r} is none of cache=, form=, fallback= and programs=, each once"
            )
        said[key] = value
    if "cache" not in said:
        raise DataRuleError(f"{text!r}: cache= is missing: the URL of a cache, machine or none")
    fallback = said.get("fallback", "origin")
    if fallback not in {"origin", "none"}:
        raise DataRuleError(f"{text!r}: fallback= is origin or none, not {fallback!r}")
    if (programs := said.get("programs", "no")) not in {"yes", "no"}:
        raise DataRuleError(f"{text!r}: programs= is yes or no, not {programs!r}")
    cache = said["cache"]
    if (own := _OWN.get(cache)) is not None:
        if "form" in said or programs == "yes":
            raise DataRuleError(
                f"{text!r}: form= and programs= are about a cache of the site, and there is none"
            )
        return DataRule(pattern=pattern, form=own)
    form = _form(text, scheme_of(pattern), cache, said.get("form", ""))
    if programs == "yes":
        _check_programs(text, pattern, form)
    return DataRule(
        pattern=pattern, cache=cache, form=form, fallback=fallback == "origin", programs=programs == "yes"
    )


def _check_programs(text: str, pattern: str, form: Form) -> None:
    """Programs are told of one cache for all URLs of a method, and ask it in one way."""
    wanted = {"root": "url", "http": "proxy", "https": "proxy"}.get(scheme_of(pattern))
    if wanted is None or pattern != f"{scheme_of(pattern)}://*":
        raise DataRuleError(f"{text!r}: programs=yes takes a rule for all of root://*, http://* or https://*")
    if form != wanted:
        raise DataRuleError(f"{text!r}: programs can ask such a cache with form={wanted} only")


def _form(text: str, scheme: str, cache: str, form: str) -> Form:
    """How the cache is asked: what is said, or what is usual for its method."""
    kind = scheme_of(cache)
    if not _names_server(cache):
        raise DataRuleError(
            f"{text!r}: {shown(cache)!r} is no URL of a cache, such as root://xcache.site:1094"
        )
    forms = next((each for ours, theirs, each in _FORMS if scheme in ours and kind in theirs), ())
    if not forms:
        raise DataRuleError(f"{text!r}: {kind or shown(cache)!r} is no cache for {scheme}:// URLs")
    by_name: dict[str, Form] = {str(each): each for each in forms}
    found = by_name.get(form or forms[0])
    if found is None:
        raise DataRuleError(f"{text!r}: form= is here one of {', '.join(forms)}, not {form!r}")
    return found


def _names_server(cache: str) -> bool:
    try:
        parts = urlsplit(cache)
        return bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        return False


def _lowered(url: str) -> str:
    """With its method and its host in lower case."""
    scheme, between, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{between}{host.lower()}{slash}{path}"
