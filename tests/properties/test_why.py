"""
The record of a cycle and the answer to `why` say of every clause and every slot what the evaluator says, one by one.
"""

from collections import Counter

from hypothesis import given
from tests.unit.matchmaking.slowly import JOBS, POOLS, Slot, refusals

from kettle.classad import ClassAd
from kettle.matchmaking import Analyst, Explainer
from kettle_services.negotiator.domain.cycle import negotiate
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import ResourceRequest, SlotSecret, SubmitterAd

MANY = 100_000
"""More jobs than any of these pools has room for."""


@given(POOLS, JOBS)
def test_the_record_and_the_answer_agree_with_every_clause_on_every_slot(ads: list[Ad], wants: Ad) -> None:
    """
    How many slots could run the job, and how many each clause of either side refuses; both were told of the same slots.
    """
    pool = Pool()
    for number, ad in enumerate(ads):
        pool.slot(str(number), {**ad, "Name": f"slot{number}", "State": "Unclaimed"})
        pool.secret(str(number), SlotSecret(startd="m", capability="c"))
    request = ResourceRequest(autocluster=1, count=MANY, ad=wants)
    pool.submitter(
        "s", SubmitterAd(name="ada", schedd="ap", idle=MANY, running=0, held=0, requests=[request])
    )
    counts: Counter[tuple[str, str]] = Counter()
    slots = [Slot(row, ad) for row, ad in enumerate(ads)]
    able = refusals(ClassAd.from_wire(wants), slots, counts)
    known = {(side, text): n for (side, text), n in counts.items() if n and "does not fit" not in text}

    outcome = negotiate(pool, Reasons(), now=0.0, trust=9.0)
    (said,) = outcome.rejections
    assert (MANY, sum(match.count for match in outcome.matches)) == (said.asked, said.given)
    assert (MANY, len(ads)) == (said.given + said.count, said.slots)
    assert able == said.able
    found = Analyst(Explainer(pool.slots, pool.machines(), policies=True)).analyse(ClassAd.from_wire(wants))
    assert (len(ads), able, said.cause == "fault") == (found.slots, found.able, bool(found.fault))
    if found.fault:
        return
    assert (said.cause in {"no_match", "no_slots"}) == (not able)
    recorded = {(one.side, one.text): one.refuses for one in said.clauses if "does not fit" not in one.text}
    assert recorded.items() <= known.items()
    assert len(known) <= len(recorded) + said.more
    apart = Counter[tuple[str, str]]()
    refusals(ClassAd.from_wire(wants), slots, apart, policies=True)
    answered = {
        (one.side, one.text): one.asked - one.passes for one in found.clauses if one.passes < one.asked
    }
    assert {key: n for key, n in apart.items() if n and "does not fit" not in key[1]} == {
        key: n for key, n in answered.items() if "does not fit" not in key[1]
    }
