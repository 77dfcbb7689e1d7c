"""Who may do what with others' jobs, and what the others are told."""

from kettle_services.schedd.domain.authorization import may_manage, refusal


def test_the_owner_and_the_super_users_manage_a_job() -> None:
    """And nobody else."""
    assert [True, True, False] == [may_manage(who, "ada", {"root"}) for who in ("ada", "root", "eve")]


def test_a_refusal_says_who_may() -> None:
    """With who asked, for what, whose it is, and the setting that lets others."""
    assert (
        "eve may not edit cluster 5, which is of ada: ada may, and who is in queue_super_users of [schedd]"
        == refusal("eve", "edit cluster 5", "ada")
    )
    assert refusal("eve", "have job 1.0 run now", "ada", super_users=False).endswith("of ada: ada may alone")
