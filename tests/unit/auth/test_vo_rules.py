"""Of which VO people are by the rules of a site."""

from pathlib import Path

import pytest

from kettle.auth.mapping.policy import AccessPolicy
from kettle.auth.mapping.principals import of_claims
from kettle.runtime import access_files

CMS = "https://cms.example.org/"
RULES = """\
[[rules]]
when = { issuer = "https://cms.example.org/", groups = ["/cms/pilots"] }
owner = "cmspilot"
vo = "cms"

[[rules]]
when.issuer = "https://cms.example.org/"
owner = "cmsuser"
"""


def read(directory: Path, text: str) -> tuple[AccessPolicy, list[str]]:
    """The policy of a rules file, and what is wrong with that."""
    file = directory / "rules.toml"
    file.write_text(text)
    files, findings = access_files.read([], file)
    said = [f"{each.place.line}: {each.sentence}" for each in findings]
    return AccessPolicy(domain="pool", rules=files.rules.rules), said


def test_the_first_rule_that_applies_says_the_vo(tmp_path: Path) -> None:
    """It is named also when it gives none; who is in no rule is of none."""
    policy, findings = read(tmp_path, RULES)
    assert ([], True) == (findings, policy.gives_vos)
    pilot = policy.identify(of_claims({"iss": CMS, "sub": "1", "wlcg.groups": ["/cms/pilots"]}), 0.0)
    member = policy.identify(of_claims({"iss": CMS, "sub": "2"}), 0.0)
    other = policy.identify(of_claims({"iss": "https://else.example.org/", "sub": "3"}), 0.0)
    assert ["cms", "", ""] == [who.vo for who in (pilot, member, other)]
    assert (1, 6, None) == tuple(who.rule and who.rule.place.line for who in (pilot, member, other))
    assert not read(tmp_path, RULES.replace('vo = "cms"', 'levels = ["READ"]'))[0].gives_vos


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('owner = "cmsuser"', 'owner = "cmspilot"'), "gives cmspilot the VO cms, and this rule another"),
        (('vo = "cms"', 'vo = "c m s"'), "matching regex"),
        (('vo = "cms"', "vo = '\\\\1'"), "matching regex"),
    ],
)
def test_what_would_let_one_vo_pass_for_another_is_said(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    """Two VOs behind one name, and a name of a VO that the subject of a token could make up."""
    _, findings = read(tmp_path, RULES.replace(*change))
    assert any(says in each for each in findings), findings
