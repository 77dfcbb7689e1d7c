"""The rules of a site for data."""

import pytest

from kettle.transfer.data_rules import DataRuleError, read_rules, rule_for


def address(text: str, url: str) -> str | None:
    """What a cache is asked for; None: the rule is not for this URL."""
    rule = rule_for(read_rules([text]), url)
    return rule.address(url) if rule is not None else None


@pytest.mark.parametrize(
    ("text", "url", "there"),
    [
        ("root://*: cache=root://x:1094", "root://eos.cern.ch//a/b?c", "root://x:1094//a/b?c"),
        ("root://*: cache=root://x:1094, form=url", "root://eos//a", "root://x:1094//root://eos//a"),
        ("root://EOS.cern.ch/*: cache=root://x", "root://eos.cern.ch//a", "root://x//a"),
        ("root://*: cache=root://x", "https://eos/a", None),
        ("https://*: cache=https://c/top, form=path", "https://h/a/b", "https://c/top/a/b"),
        ("http://*: cache=http://squid:3128", "http://h/a", ""),
        ("s3://*: cache=machine", "s3://b/o", ""),
    ],
)
def test_what_a_cache_is_asked_for(text: str, url: str, there: str | None) -> None:
    """A path, a whole URL, or nothing else where it is a proxy."""
    assert there == address(text, url)


def test_the_first_rule_that_fits_counts() -> None:
    """
    A site excludes what its cache does not serve before it says the rest; secrets in URLs match nothing.
    """
    rules = read_rules(
        ["https://own.site/*: cache=none", "https://*: cache=http://squid:3128, fallback=none"]
    )
    forms = [
        (rule.form, rule.fallback)
        for url in ("https://own.site/a", "https://x/a")
        if (rule := rule_for(rules, url))
    ]
    assert [("none", True), ("proxy", False)] == forms
    assert rule_for(rules, "https://x/a?sig=https://own.site/a") is rules[1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("root://* cache=root://x", "is no rule for data"),
        ("eos: cache=root://x", "is no rule for data"),
        ("root://*: root://x", "is none of cache="),
        ("root://*: cache=root://x, cache=root://y", "each once"),
        ("root://*: fallback=origin", "cache= is missing"),
        ("root://*: cache=root://x, fallback=yes", "fallback= is origin or none, not 'yes'"),
        ("root://*: cache=xcache.site:1094", "is no URL of a cache"),
        ("root://*: cache=root://x:99999", "is no URL of a cache"),
        ("root://*: cache=http://x", "'http' is no cache for root:// URLs"),
        ("root://*: cache=root://x, form=proxy", "form= is here one of path, url, not 'proxy'"),
        ("https://*: cache=https://x, form=proxy", "form= is here one of path, url"),
        ("root://*: cache=machine, form=url", "there is none"),
        ("root://*: cache=none, programs=yes", "there is none"),
        ("root://*: cache=root://x, programs=maybe", "programs= is yes or no"),
        ("root://*: cache=root://x, programs=yes", "with form=url only"),
        ("root://eos/*: cache=root://x, form=url, programs=yes", "a rule for all of"),
        ("s3://*: cache=http://x:3128, programs=yes", "a rule for all of"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, why: str) -> None:
    """With the rule, and what to write."""
    with pytest.raises(DataRuleError, match=why):
        read_rules([text])


def test_a_password_in_a_rule_is_not_repeated() -> None:
    """Rules have none, and what refuses them is in the log of the machine."""
    with pytest.raises(DataRuleError, match="is no URL of a cache") as refused:
        read_rules(["https://*: cache=http://ada:secret@squid.site:3128"])
    assert "secret" not in str(refused.value)
