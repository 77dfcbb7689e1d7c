"""What a throw-away pool is told."""

from kettle.pool.personal_settings import Tables
from kettle.testing.throwaway_pool import SHORT, merged


def test_the_last_word_counts() -> None:
    """For each setting alone, whatever else its table has; what was given stays as it was."""
    usual: Tables = {"schedd": {"lease": 60.0, "ad_interval": 2.0}, "startd": {"num_cpus": 2}}
    wanted: Tables = {"schedd": {"lease": 3.0}, "master": {"throwaway": True}}
    found = merged(usual, wanted)
    assert {"lease": 3.0, "ad_interval": 2.0} == found["schedd"]
    assert {"num_cpus": 2} == found["startd"]
    assert {"throwaway": True} == found["master"]
    assert 60.0 == usual["schedd"]["lease"]
    assert {"lease": 3.0} == wanted["schedd"]


def test_nothing_is_lost_because_a_machine_is_loaded() -> None:
    """Claims outlive many renewals, and a daemon that a test has stopped is not taken for hung."""
    schedd, master = SHORT["schedd"], SHORT["master"]
    assert isinstance(schedd["lease"], float)
    assert isinstance(schedd["alive_interval"], float)
    assert isinstance(master["not_responding_timeout"], float)
    assert schedd["lease"] >= 60 * schedd["alive_interval"]
    assert master["not_responding_timeout"] > schedd["lease"]
