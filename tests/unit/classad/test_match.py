import pytest

from kettle.classad import (
    ClassAd,
    Context,
    conceals,
    conjuncts,
    external_references,
    matches,
    one_way,
    parse,
    rank,
    references,
    unparse,
)

JOB = ClassAd.parse(
    '[Requirements = TARGET.Memory >= RequestMemory; RequestMemory = 10; Rank = Memory; Owner = "a"]'
)
SLOT = ClassAd.parse('[Requirements = Owner == "a"; Memory = 20]')


def test_two_ads_match_if_each_accepts_the_other() -> None:
    """Both Requirements are true, whichever side asks."""
    assert matches(JOB, SLOT)
    assert matches(SLOT, JOB)


def test_one_refusal_is_enough() -> None:
    """A slot that wants another owner does not match, though the job would take it."""
    picky = SLOT.copy()
    picky["Requirements"] = parse('Owner == "b"')
    assert (True, False, False) == (one_way(JOB, picky), one_way(picky, JOB), matches(JOB, picky))


def test_whatever_is_not_true_is_no_match() -> None:
    """Undefined, error, strings, a failed evaluation and no Requirements at all refuse; numbers count."""
    texts = ["undefined", "error", '"true"', "random(0)", "0", "1"]
    ads = [ClassAd({"Requirements": parse(text)}) for text in texts]
    assert [False, False, False, False, False, True] == [one_way(ad, SLOT) for ad in ads]
    assert not one_way(ClassAd(), SLOT)


def test_each_side_has_a_budget_of_its_own() -> None:
    """What one side's Requirements cost is not taken from the other's."""
    demanding = parse("TARGET.Memory + TARGET.Memory >= Memory")
    left, right = (ClassAd({"Requirements": demanding, "Memory": 1}) for _ in range(2))
    assert matches(left, right, Context(max_steps=7))
    assert not matches(left, right, Context(max_steps=6))


def test_an_ad_can_match_itself() -> None:
    """Both sides are then one, and circles end there as elsewhere."""
    ad = ClassAd.parse("[Requirements = TARGET.x == 1 && (TARGET.Requirements ?: true); x = 1]")
    assert matches(ad, ad)


def test_a_rank_is_a_number() -> None:
    """True is 1, anything that is no number is 0."""
    texts = ["Memory", "true", "1.5", "nosuch", '"a"', "error", "random(0)"]
    ads = [ClassAd({"Rank": parse(text)}) for text in texts]
    assert [20.0, 1.0, 1.5, 0.0, 0.0, 0.0, 0.0] == [rank(ad, SLOT) for ad in ads]


def test_references_go_through_the_ads_own_attributes() -> None:
    """Everything that an attribute needs is needed by expressions that mention it."""
    ad = ClassAd.parse("[Big = Memory > Limit; Limit = TARGET.Disk + MY.Extra; Loop = Loop]")
    found = references(parse("Big && Loop && Arch == TARGET.arch"), ad)
    assert {"Big", "Limit", "Loop"} == found.internal
    assert {"Memory", "TARGET.Disk", "Extra", "Arch", "TARGET.arch"} == found.external


def test_references_walk_calls_lists_ads_and_subscripts() -> None:
    """Every place an expression can stand is looked into; strings are not."""
    found = references(parse('f(a, {b}[c], [d=1; e=d+g].e, h.i.j, x ? y : z ?: w, "k", eval("l"), -m, (n))'))
    assert set("abcghxyzwmn") == found.external


def test_magic_names_are_no_references() -> None:
    """CurrentTime, MY, parent and the like are not attributes of anyone."""
    assert frozenset[str]() == references(parse("CurrentTime > 5 && MY =?= parent")).external


def test_external_references_have_one_spelling_and_no_prefix() -> None:
    """What makes up an autocluster: the names asked of the slot."""
    asked = external_references(
        parse("TARGET.Memory > 1 && memory < 9 && OTHER.Disk.x[0] > 1 && my.q"), ClassAd()
    )
    assert {"memory", "disk", "q"} == {name.lower() for name in asked}
    assert 3 == len(asked)


def test_conjuncts_are_the_clauses_at_the_top() -> None:
    """Parentheses around conjunctions are seen through, other operators are not."""
    clauses = conjuncts(parse("(a && (b || c)) && ((d) && e == f)"))
    assert ["a", "b || c", "d", "e == f"] == [unparse(clause) for clause in clauses]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Memory > 1 && MY.Disk > TARGET.Disk", False),
        ("Sizes[0] + {1, 2}[1]", False),
        ('strcat("eval", "(x)")', False),
        ('eval("Memory")', True),
        ("1 + unresolved(Memory)", True),
        ("MY", True),
        ('MY["Memory"]', True),
        ('Sizes[strlen("x")]', True),
        ("[a = 1].Memory", True),
        ("parent.Memory", True),
    ],
)
def test_what_conceals_which_attributes_it_looks_at(text: str, expected: bool) -> None:
    """
    Text that is evaluated, and what is chosen from a whole ad; a number of a list, and sides of a match, do not.
    """
    assert expected == conceals(parse(text))
