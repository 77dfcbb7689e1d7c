from collections.abc import Mapping
from pathlib import Path

import pytest

from kettle.auth.mapping.access_lists import AccessLists, Entry, suspicions
from kettle.auth.mapping.findings import Place
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.policy import AccessPolicy
from kettle.auth.mapping.principals import Address, local, of_claims
from kettle.runtime import access_files

CMS = "https://cms.example.org/"
RULES = r"""
[[rules]]
when = { issuer = "https://cms.example.org/", groups = ["/cms/production"] }
owner = "cmsprod"
levels = ["WRITE"]
accounting_group = "group_cms.prod"

[[rules]]
when = { issuer = "https://cms.example.org/", groups = ["/cms/uscms"], subject = '/^([a-z]+)-(\d+)$/' }
owner = '\1@cms'
groups = ["cms", 'u\2']

[[rules]]
when.issuer = ["https://cms.example.org/", "https://atlas.example.org/"]
when.scopes = ["compute.create", "compute.read"]
when.claims = { azp = "/^dirac-.*/", "extra.assurance" = ["high", "/^medium.*/"] }
owner = "robot"
levels = ["READ"]

[accounting_groups]
"/cms/*" = "group_cms"
cms = "group_uscms"

[[bans]]
owner = "eve"
reason = "mines coins"
until = 2026-01-01T00:00:00Z

[[bans]]
issuer = "https://cms.example.org/"
subject = "mallory-1"

[[bans]]
token = "t-13"

[[bans]]
group = "/cms/evil"
"""
MAP = r"""
SCITOKENS /^https:\/\/old\.example\.org\/,eva$/ eva@banned.htcondor.org
SCITOKENS /^https:\/\/old\.example\.org\/,(.*)$/ \1
SSL "/CN=Ada" ada
"""
NOW = 1_700_000_000.0


@pytest.fixture
def policy(tmp_path: Path) -> AccessPolicy:
    (tmp_path / "map").write_text(MAP)
    (tmp_path / "rules.toml").write_text(RULES)
    files, findings = access_files.read([tmp_path / "map"], tmp_path / "rules.toml")
    assert [] == findings
    rules = files.rules
    allow = {
        "READ": [Entry.read("*@pool", Place("list", 1))],
        "WRITE": [Entry.read("*@pool/10.*", Place("list", 2))],
    }
    return AccessPolicy(
        domain="pool",
        rules=rules.rules,
        maps=files.maps,
        accounting_groups=rules.accounting_groups,
        bans=rules.bans,
        lists=AccessLists(allow, {"WRITE": [Entry.read("cmsprod@*/10.6.6.6", Place("list", 3))]}),
    )


def token(**claims: object) -> Mapping[str, object]:
    return {"iss": CMS, "sub": "ada-7", "wlcg.ver": "1.0", **claims}


@pytest.mark.parametrize(
    ("claims", "name", "groups", "accounting"),
    [
        (
            {"wlcg.groups": ["/cms", "/cms/production"]},
            "cmsprod@pool",
            ("/cms", "/cms/production"),
            "group_cms.prod",
        ),
        ({"wlcg.groups": ["/cms/uscms"]}, "ada@cms", ("cms", "u7"), "group_uscms"),
        (
            {"wlcg.groups": ["/cms/uscms", "/cms/production"]},
            "cmsprod@pool",
            ("/cms/uscms", "/cms/production"),
            "group_cms.prod",
        ),
        ({"wlcg.groups": ["/cms/productions"]}, "", (), ""),
        ({"wlcg.groups": ["/cms/production/x"]}, "", (), ""),
        ({"wlcg.groups": ["/cms"]}, "", (), ""),
        ({"wlcg.groups": ["/x/cms/production"]}, "", (), ""),
        ({"wlcg.groups": "/cms/production /cms/uscms"}, "", (), ""),
        ({"wlcg.groups": ["/cms/production"], "scope": "storage.read:/"}, "", (), ""),
        ({"wlcg.groups": ["/cms/production"], "iss": "https://cms.example.org"}, "", (), ""),
        (
            {
                "scope": "compute.create compute.read",
                "azp": "dirac-1",
                "extra": {"assurance": ["low", "high"]},
            },
            "robot@pool",
            (),
            "",
        ),
        (
            {"scope": "compute.create compute.read", "azp": "x-dirac-1", "extra": {"assurance": "high"}},
            "",
            (),
            "",
        ),
        ({"scope": "compute.create", "azp": "dirac-1", "extra": {"assurance": "high"}}, "", (), ""),
        ({"iss": "https://old.example.org/", "sub": "grace"}, "grace@pool", (), ""),
        ({"iss": "https://old.example.org/", "sub": "root@pool"}, "", (), ""),
    ],
)
def test_the_first_rule_that_applies_says_who_it_is(
    policy: AccessPolicy, claims: Mapping[str, object], name: str, groups: tuple[str, ...], accounting: str
) -> None:
    """Groups are compared whole, count only without capabilities, and rules come before the map file."""
    who = policy.identify(of_claims(token(**claims)), NOW)
    assert (name, groups, accounting) == (who.name, who.groups, who.accounting_group)
    assert bool(name) is (not who.code)


def test_a_decision_names_file_line_and_groups(policy: AccessPolicy, tmp_path: Path) -> None:
    """What led to a name can be looked up, with what the pattern captured."""
    rule, accounting = policy.identify(of_claims(token(**{"wlcg.groups": ["/cms/uscms"]})), NOW).because
    assert (f"{tmp_path}/rules.toml:8", ("ada", "7")) == (str(rule.place), rule.captured)
    assert str(rule).endswith(r"owner \1@cms, groups cms u\2, \1 = 'ada', \2 = '7'")
    assert f"{tmp_path}/rules.toml:22: accounting_groups cms = group_uscms" == str(accounting)
    [line] = policy.identify(of_claims(token(iss="https://old.example.org/", sub="grace")), NOW).because
    assert rf"{tmp_path}/map:3: SCITOKENS /^https:\/\/old\.example\.org\/,(.*)$/ \1, \1 = 'grace'" == str(
        line
    )


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": "https://old.example.org/", "sub": "eva"}, "eva is banned ("),
        ({"sub": "mallory-1", "wlcg.groups": ["/cms/production"]}, "this credential is banned ("),
        ({"jti": "t-13", "wlcg.groups": ["/cms/production"]}, "this credential is banned ("),
        ({"wlcg.groups": ["/cms/production", "/cms/evil"]}, "this credential is banned ("),
        ({"wlcg.groups": ["/cms/evil"], "scope": "compute.read"}, "this credential is banned ("),
    ],
)
def test_the_banned_are_nobody(policy: AccessPolicy, claims: Mapping[str, object], why: str) -> None:
    """A ban wins over every rule, and a token's capabilities do not hide the group that is banned."""
    principal = of_claims(token(**claims))
    who = policy.identify(principal, NOW)
    assert ("user.banned", "") == (who.code, who.owner)
    assert who.why.startswith(why)
    decision = policy.decide(principal, Level.READ, now=NOW)
    assert not decision.allowed
    assert decision.sentence.startswith("nobody whom the pool knows has not the level READ: ")


def test_a_ban_ends(policy: AccessPolicy) -> None:
    """Until its time a ban holds for any domain, with its reason; from then on it does not."""
    end = 1_767_225_600.0  # 2026-01-01T00:00:00Z
    assert policy.identify(local("eve"), end - 1).why.startswith("this credential is banned: mines coins (")
    assert "eve@pool" == policy.identify(local("eve"), end).name


@pytest.mark.parametrize(
    ("scope", "levels"),
    [
        ("condor:/READ", {"READ"}),
        ("condor:/WRITE", {"READ", "WRITE"}),
        ("condor:/ADVERTISE_STARTD", {"READ", "ADVERTISE_STARTD"}),
        ("condor:/READ condor:/NEGOTIATOR", {"READ", "NEGOTIATOR"}),
        ("condor:/ADMIN", set[str]()),
        ("condor:/read", set[str]()),
        ("CONDOR:/READ", None),
        ("xcondor:/READ", None),
        ("compute.read", {"READ"}),
        ("compute.create compute.modify", set[str]()),
        ("compute.create compute.cancel compute.modify", {"READ", "WRITE"}),
        ("storage.read:/", set[str]()),
        ("openid profile", None),
        ("", None),
    ],
)
def test_scopes_limit_a_credential_to_their_levels(scope: str, levels: set[str] | None) -> None:
    """
    Of a WLCG token: ours, two of three are none, capabilities for others are none, and without any it has no limits.
    """
    expected = None if levels is None else frozenset(map(Level, levels))
    assert expected == of_claims(token(scope=scope)).limits


@pytest.mark.parametrize(
    ("claims", "method", "levels"),
    [
        ({"ver": "scitoken:2.0", "scope": ""}, "SCITOKENS", frozenset[Level]()),
        ({"ver": "scitoken:2.0", "scope": "compute.read"}, "SCITOKENS", frozenset[Level]()),
        ({"ver": "scitoken:2.0", "scope": "condor:/READ"}, "SCITOKENS", frozenset({Level.READ})),
        ({"scope": "condor:/READ"}, "IDTOKENS", frozenset({Level.READ})),
        ({}, "IDTOKENS", None),
        ({"scp": ["condor:/READ"]}, "SCITOKENS", frozenset({Level.READ})),
    ],
)
def test_what_a_profile_makes_of_scopes(
    claims: Mapping[str, object], method: str, levels: frozenset[Level] | None
) -> None:
    """A SciToken is nothing but its scopes; a token of the pool without scopes is its holder's name alone."""
    assert levels == of_claims({"iss": "i", "sub": "s", **claims}, method=method).limits


def test_what_is_missing_is_said(policy: AccessPolicy) -> None:
    """A refusal says who, which level, and the rule or what would have to be different."""
    grace = of_claims(token(iss="https://old.example.org/", sub="grace"))
    far, near = Address("192.168.0.1"), Address("10.0.0.1")
    assert policy.decide(grace, Level.WRITE, near, now=NOW).sentence == (
        "grace@pool has the level WRITE (list:2: allow WRITE = *@pool/10.*)"
    )
    assert policy.decide(grace, Level.WRITE, far, now=NOW).sentence == (
        "grace@pool has not the level WRITE: allow.WRITE of [authorization] (list:2) has no entry for grace@pool, "
        "and grace@pool has no level that implies it"
    )
    assert policy.decide(grace, Level.CONFIG, near, now=NOW).missing == (
        "[authorization] has no allow.CONFIG, and grace@pool has no level that implies it"
    )
    prod = of_claims(token(**{"wlcg.groups": ["/cms/production"]}))
    assert policy.decide(prod, Level.READ, far, now=NOW).allowed
    assert policy.decide(prod, Level.WRITE, far, now=NOW).because == policy.identify(prod, NOW).because[0]
    assert policy.decide(prod, Level.WRITE, Address("10.6.6.6"), now=NOW).sentence == (
        "cmsprod@pool has not the level WRITE: denied by list:3: deny WRITE = cmsprod@*/10.6.6.6"
    )
    reader = of_claims(token(iss="https://old.example.org/", sub="grace", scope="condor:/READ"))
    assert policy.decide(reader, Level.WRITE, near, now=NOW).missing == (
        "the credential is limited to READ by its scopes; the scope condor:/WRITE is missing"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[rules]]\nwhen.sub = 'x'\nowner = 'a'", "1: there is no sub here; did you mean subject?"),
        ("[[rules]]\nowners = 'a'", "1: there is no owners here; did you mean owner?"),
        (
            "[[rules]]\nlevels = ['ADMINISTRATORS']",
            "1: there is no level ADMINISTRATORS; did you mean ADMINISTRATOR?",
        ),
        (
            "[[rules]]\nwhen.subject = '/^(a$/'\nowner = 'a'",
            "1: /^(a$/ is no expression that can be used: missing ): ^(a$.",
        ),
        ("[[rules]]\nowner = '\\1'", "1: '\\1' refers to \\1, and the pattern has no group."),
        ("[rules]\na = 1", "1: write it as [[rules]]."),
        ("[[rule]]\na = 1", "1: a rules file has no table rule; did you mean rules?"),
        ("\n[[bans]]\nreason = 'x'", "2: it names nobody: give owner, issuer, subject, token or group."),
        ("[[bans]]\nsubject = 'x'", "1: a subject is somebody only with an issuer: give the issuer too."),
        ("[accounting_groups]\n'/cms' = 'a b'", "2: 'a b' is no name of an accounting group."),
        ("[[rules]]\nowner = ", "2: Invalid value, at the end of the file."),
    ],
)
def test_a_rules_file_that_cannot_be_right_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """Each mistake has its line and one sentence, with the nearest known name."""
    (tmp_path / "r").write_text(text)
    _, [finding] = access_files.read([], tmp_path / "r")
    assert not finding.warning
    assert f"{tmp_path / 'r'}:{why}" == str(finding)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[rules]]\nowner='a'\n[[rules]]\nwhen.issuer='i'\nowner='b'", "3: warning: never counts: "),
        (
            "[[rules]]\nwhen={issuer='i',groups=['/a','/b']}\nowner='a'\n[[rules]]\nwhen={issuer='i',groups='/a',scopes='x'}\nowner='b'",
            "4: warning: never counts: ",
        ),
        (
            "[[rules]]\nwhen.subject='/a$/'\nwhen.issuer='i'\nowner='b'",
            "1: warning: /a$/ may match in the middle",
        ),
        ("[[rules]]\nwhen.groups='/a'\nowner='b'", "1: warning: it applies to tokens of any issuer"),
        ("[[rules]]\nwhen.issuer='i'", "1: warning: it gives nothing"),
        (
            "[[rules]]\nwhen.issuer='/i/'\nowner='b'",
            "1: warning: it never applies: an issuer is compared letter",
        ),
        (
            "[[rules]]\nwhen.method='SCITOKEN'\nowner='b'",
            "1: warning: it never applies: nobody is known by SCITOKEN;",
        ),
    ],
)
def test_a_rule_that_is_seldom_meant_is_warned_of(tmp_path: Path, text: str, why: str) -> None:
    """Rules that never count, that let in more than they say, or that mix issuers."""
    (tmp_path / "r").write_text(text)
    _, [finding] = access_files.read([], tmp_path / "r")
    assert str(finding).startswith(f"{tmp_path / 'r'}:{why}")


@pytest.mark.parametrize(
    ("text", "user", "address", "applies"),
    [
        ("ada@pool", "ada@pool", "", True),
        ("ada@POOL", "ada@pool", "", True),
        ("ada", "ada@pool", "", False),
        ("*", "ada@pool", "", True),
        ("ada@*/*.example.org", "ada@pool", "node.example.org", True),
        ("ada@*/*.example.org", "ada@pool", "example.org.evil", False),
        ("*/2001:db8::/32", "ada@pool", "2001:db8::7", True),
        ("10.0.0.0/8", "ada@pool", "::ffff:10.1.1.1", True),
        ("10.*", "ada@pool", "", False),
    ],
)
def test_an_entry_is_about_users_and_hosts(text: str, user: str, address: str, *, applies: bool) -> None:
    """Names, patterns, networks of both kinds; what is not known from where it comes is let in by no host."""
    ip, names = (address, ()) if not address or address[0] in "0123456789:" else ("", (address,))
    entry = Entry.read(text, Place(""))
    assert applies is (entry.is_user(user, exactly=True) and entry.is_host(Address(ip, names)))


def test_a_denied_host_is_denied_where_no_host_is_known() -> None:
    """A deny list that cannot be compared shuts out: it must not be without effect."""
    lists = AccessLists({"READ": [Entry.read("*", Place(""))]}, {"READ": [Entry.read("*/10.*", Place(""))]})
    assert [False, False, True] == [
        lists.decide("a@b", Level.READ, each).allowed
        for each in (Address(), Address("10.1.1.1"), Address("1.1.1.1"))
    ]


@pytest.mark.parametrize(
    ("kind", "key", "text", "why"),
    [
        ("allow", "WRITE", "*", "lets everybody in"),
        ("allow", "ADMINISTRATOR_SCHEDD", "*@*", "lets everybody in"),
        ("allow", "READ", "ada", "is the host ada; a user is 'ada@*'"),
        ("deny", "WRITE", "*@p/10.*", "shuts out *@p from anywhere on the bus"),
        ("allow", "READ", "*", ""),
        ("allow", "WRITE", "10.0.0.1", ""),
        ("deny", "ADVERTISE_STARTD", "*/10.*", ""),
        ("deny", "WRITE", "eve@*", ""),
    ],
)
def test_an_entry_that_is_seldom_meant_is_warned_of(kind: str, key: str, text: str, why: str) -> None:
    """What lets everybody in, names a host for a user, or shuts out more than it says."""
    found = [each.sentence for each in suspicions(kind, key, Entry.read(text, Place("list", 1)))]
    assert len(found) == bool(why)
    assert all(why in each for each in found)
