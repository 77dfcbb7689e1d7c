"""What a starter does about the services of its job."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kettle.execution.attempts.job_spec import ChirpPolicy, JobSpec
from kettle.execution.attempts.messages import Question, Reply, Unanswered
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.job_environment.variables import job_environment
from kettle.execution.system.linux import boottime
from kettle.published.job_side import Orders, Said
from kettle.published.services import Service, ServiceError
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.published import helper
from kettle_services.starter.published.publisher import Publisher
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.commands.questions import AskTicket, TicketGiven
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

WEB = Service("web", 8080, "http")
FAR = float("inf")


class MadeUpHelper:
    """A process that is told everything and says what a test says."""

    def __init__(self) -> None:
        self.pid, self.told = 4_000_000, 99
        self.orders: list[Orders] = []
        self.says: list[Said] | None = []
        self.ended = 0

    def order(self, orders: Orders) -> bool:
        self.orders.append(orders)
        return True

    def hear(self) -> list[bytes] | None:
        return None if self.says is None else [msgspec.json.encode(said) for said in self.says]

    def end(self) -> None:
        self.ended += 1


class Job:
    """A job that publishes something, or may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, allowed: bool = True, **ad: Any) -> None:
        self.asked: list[Question] = []
        self.helpers: list[MadeUpHelper] = []
        self.spec = JobSpec(
            key=ClaimKey("claim", "secret"), job=JobId(12, 0), attempt=1, schedd="schedd", execute="/x", state="/x",
            slot="slot1", cpus=1, memory=1, disk=1, ad=ad, machine_ad="", inputs=[], received=0, began=0.0,
            deadline=0.0, sequence=0, chirp=ChirpPolicy(services=allowed),
        )  # fmt: skip

        def fork(*_: object, **__: object) -> MadeUpHelper:
            self.helpers.append(MadeUpHelper())
            return self.helpers[-1]

        monkeypatch.setattr(helper, "TunnelHelper", fork)
        self.tree = ProcessTree(1, None)
        questions = SubmitSideQuestions("shadow", self.asked.append)
        self.publisher = Publisher(self.spec, JobAd(ad), None, questions)

    def go_on(self, *, still: bool = False, ready: Callable[[], set[int]] = set) -> None:
        self.publisher.go_on(ready(), still=still)

    def hear(self, answer: Any) -> None:
        self.publisher.hear(Reply(self.asked[-1].number, answer))

    def given(self, ticket: str = "t", left: float = 90.0) -> None:
        self.hear(TicketGiven(url="https://g", ticket=ticket, left=left))

    def says(self, *said: Said) -> None:
        self.helpers[-1].says = list(said)
        self.go_on(ready=lambda: {99})


def test_a_job_that_publishes_nothing_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No question, no process, nothing to wake up for."""
    job = Job(monkeypatch)
    job.publisher.begin(job.tree)
    job.go_on()
    assert (job.asked, job.helpers, job.publisher.due) == ([], [], FAR)


def test_services_are_published_while_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A ticket is asked for when the program runs; with it the process begins, and it is ended with the program.
    """
    job = Job(monkeypatch, Services="web:8080/http")
    assert job.publisher.due == FAR
    job.publisher.begin(job.tree)
    job.go_on()
    assert [each.asks for each in job.asked] == [AskTicket()]
    job.given()
    job.go_on()
    (process,) = job.helpers
    assert process.orders[-1].announcement.services == (WEB,)
    assert process.orders[-1].ticket == "t"
    assert process.pid in job.tree.besides
    assert 59 < job.publisher.due - boottime() <= 60
    job.publisher.close()
    assert (process.ended, job.tree.besides, job.publisher.due) == (1, set(), FAR)
    job.publisher.begin(job.tree)
    job.go_on()
    assert len(job.helpers) == 2


def test_tickets_are_renewed_and_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process shows the next one; after a refusal it is asked again later, and the job goes on."""
    job = Job(monkeypatch, Services="web:8080/http")
    job.publisher.begin(job.tree)
    job.go_on()
    job.hear(Unanswered("refused", "no gateway"))
    assert 29 < job.publisher.due - boottime() <= 30
    later = boottime() + 31
    monkeypatch.setattr("kettle_services.starter.published.publisher.boottime", lambda: later)
    job.go_on()
    assert len(job.asked) == 2
    job.given("one")
    job.go_on()
    later += 61
    job.go_on()
    assert len(job.asked) == 3
    job.given("two")
    job.go_on()
    (process,) = job.helpers
    assert process.orders[-1].ticket == "two"


def test_a_program_publishes_and_withdraws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is there when the gateway has the service, and not any more when it has lost it."""
    job = Job(monkeypatch)
    job.publisher.begin(job.tree)
    job.publisher.publish(WEB)
    job.go_on()
    job.given()
    job.go_on()
    assert job.publisher.address_of(WEB) == ""
    job.says(Said(connected=True, services=(WEB,)))
    assert job.publisher.address_of(WEB) == "https://g/jobs/12.0/web/"
    assert job.publisher.address_of(Service("web", 8081, "http")) == ""
    job.says(Said(text="the gateway is gone"))
    assert job.publisher.address_of(WEB) == ""
    job.publisher.unpublish("web")
    job.go_on()
    assert job.helpers[-1].orders[-1].announcement.services == ()
    with pytest.raises(ServiceError):
        job.publisher.unpublish("web")


def test_a_process_that_dies_has_a_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a moment, and with the same ticket."""
    job = Job(monkeypatch, Services="web:8080/http")
    job.publisher.begin(job.tree)
    job.go_on()
    job.given()
    job.go_on()
    job.helpers[-1].says = None
    job.go_on(ready=lambda: {99})
    assert (job.helpers[-1].ended, len(job.helpers)) == (1, 1)
    assert 1 < job.publisher.due - boottime() <= 2
    later = boottime() + 3
    monkeypatch.setattr("kettle_services.starter.published.publisher.boottime", lambda: later)
    job.go_on()
    assert (len(job.helpers), len(job.asked)) == (2, 1)


def test_a_suspended_job_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And that it is not, any more."""
    job = Job(monkeypatch, Services="web:8080/http")
    job.publisher.begin(job.tree)
    job.go_on()
    job.given()
    job.go_on()
    for still in (True, False):
        job.go_on(still=still)
        assert job.helpers[-1].orders[-1].announcement.suspended is still


def test_the_machines_owner_may_forbid_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the description says."""
    job = Job(monkeypatch, allowed=False, Services="web:8080/http")
    job.publisher.begin(job.tree)
    job.go_on()
    assert (job.asked, job.publisher.due) == ([], FAR)


def test_a_job_knows_its_path_at_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """If its description says that it publishes something."""
    job = Job(monkeypatch)
    for services, expected in (("web:8080/http-prefix", "/jobs/12.0"), ("", None)):
        environment = job_environment(job.spec, JobAd({"Services": services} if services else {}), "/x", {})
        assert environment.get("KETTLE_SERVICES_PREFIX") == expected
