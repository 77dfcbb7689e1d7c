"""Which files get an event, and how it is written into each of them."""

from collections.abc import Iterator
from datetime import tzinfo
from pathlib import PurePosixPath
from typing import NamedTuple

from kettle.userlog.event_to_ad import TRIGGERS, TYPES, attributes, number_of
from kettle.userlog.events import OF_CLUSTER, JobAdInformation, LogEvent
from kettle.userlog.job_ad_information import JobAds
from kettle.userlog.projector_state import ProjectorState
from kettle.userlog.rendering import render
from kettle.userlog.routes import Route, Routes
from kettle_wire.ads.types import Ad


class LogLine(NamedTuple):
    """One event for one file."""

    path: PurePosixPath
    text: str
    owner: str = ""
    """Whose file it is."""


class RoutedLines:
    """The lines of the events of one shard, whose jobs `state` knows."""

    def __init__(self, state: ProjectorState, routes: Routes, ads: JobAds, zone: tzinfo | None) -> None:
        self._state = state
        self._routes = routes
        self._ads = ads
        self._zone = zone

    def lines(self, event: LogEvent) -> Iterator[LogLine]:
        """The lines of one event: none if no file has it."""
        cluster = self._state.clusters[event.job.cluster]
        whole = event.job.proc == OF_CLUSTER
        for route in self._routes.of(cluster.ad if whole else cluster.ad_of(event.job.proc), cluster.options):
            if route.numbers is not None and number_of(event) not in route.numbers:
                continue
            yield LogLine(route.path, render(event, self._zone, route.written), cluster.owner)
            if route.information and not whole:
                told = self._information(event, route)
                yield LogLine(route.path, render(told, self._zone, route.written), cluster.owner)

    def _information(self, event: LogEvent, route: Route) -> JobAdInformation:
        """The event again, and the requested attributes of the job, as in HTCondor."""
        said = attributes(event, route.written, self._zone) | self._ads.said(event.job, route.information)
        number = JobAdInformation.number
        trigger: Ad = {
            "TriggerEventTypeNumber": number_of(event),
            "TriggerEventTypeName": TRIGGERS[number_of(event)],
        }
        head: Ad = {"MyType": TYPES[number], "EventTypeNumber": number}
        told = sorted((said | head | trigger).items(), key=lambda member: member[0].lower())
        return JobAdInformation(job=event.job, at=event.at, attributes=dict(told))
