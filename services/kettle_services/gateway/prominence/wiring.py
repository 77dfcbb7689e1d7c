"""How the parts of PROMINENCE's interface hang together."""

import asyncio

import aiohttp
from aiohttp import web

from kettle.auth.private_files import key_file, private_directory
from kettle.bus.ports import Bus
from kettle.runtime import Runtime, SettingsError
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.prominence.application import add_routes
from kettle_services.gateway.prominence.bucket import bucket_of
from kettle_services.gateway.prominence.dag_workflows import DagWorkflows
from kettle_services.gateway.prominence.data import Data
from kettle_services.gateway.prominence.documents import Documents
from kettle_services.gateway.prominence.health import Health
from kettle_services.gateway.prominence.job_lists import JobLists, Written
from kettle_services.gateway.prominence.jobs import JobHandlers
from kettle_services.gateway.prominence.key_values import KeyValues
from kettle_services.gateway.prominence.object_directory import Limits, ObjectDirectory
from kettle_services.gateway.prominence.pool import PoolQuestions
from kettle_services.gateway.prominence.resource import Parts
from kettle_services.gateway.prominence.running_jobs import RunningJobs
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.prominence.streams import Streams
from kettle_services.gateway.prominence.submitting import Submitting
from kettle_services.gateway.prominence.time_series import MOST_JOBS, TimeSeries, Used
from kettle_services.gateway.prominence.workflows import Workflows
from kettle_services.gateway.rest.application import Front
from kettle_services.gateway.rest.dag_jobs import DagJobs
from kettle_services.gateway.rest.wiring import RestParts, directory
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.rest.files import GET_STDERR, GET_STDOUT


async def add_prominence(
    rt: Runtime, application: web.Application, settings: GatewaySettings, bus: Bus, parts: RestParts, url: str
) -> None:
    """
    Serve it, to who shows a token: its client has no cookies, and a page of others has nothing to ask here. `url`: where people and
    machines reach this gateway.

    Raises SettingsError: the key of its addresses cannot be used, or that of its bucket.
    """
    front = Front(parts.persons, parts.limits)
    place = private_directory(directory(settings) / "prominence")
    try:
        key = key_file(place / "addresses.key")
    except (OSError, ValueError) as error:
        raise SettingsError(f"prominence: the key that signs addresses cannot be used: {error}") from error
    limits = Limits(
        largest=settings.prominence_largest,
        all_of_one=settings.prominence_quota,
        kept=settings.prominence_kept,
    )
    bucket = None
    if settings.prominence_bucket:
        bucket = await asyncio.to_thread(bucket_of, settings, await rt.enter(aiohttp.ClientSession()))
    objects = ObjectDirectory(place / "objects", limits, bucket)
    rt.loop(objects.keep_house(), name="objects")
    signer, written = Signer(key, url), Written()
    data = Data(objects, signer)
    values = KeyValues(parts.people)
    health = Health(bus, settings.collector, parts.tables)
    questions = Questions(parts.handlers, front.require)
    lists = JobLists(questions, written)
    running = RunningJobs(parts.people, lists, objects, signer)
    pool = PoolQuestions(bus, settings.collector, questions, parts.people)
    documents = Documents(objects)
    submitting = Submitting(signer, written, documents)
    streams = Streams(
        parts.people, {"stdout": parts.handlers[GET_STDOUT], "stderr": parts.handlers[GET_STDERR]}
    )
    of_both = Parts(parts.people, lists, written, submitting, documents, streams)
    jobs = JobHandlers(of_both, objects, signer)
    workflows = Workflows(of_both, DagWorkflows(DagJobs(settings.home_path), submitting, written))
    parts.new_workflows.run_documents_by(workflows.submit_dag)
    parts.reruns.rerun_documents_by(workflows.rerun_dag)
    most = Used(jobs=MOST_JOBS, size=settings.prominence_quota)
    series = TimeSeries(place / "series", settings.prominence_kept, most, signer, lists)
    rt.loop(series.keep_house(), name="series")
    routes = [
        route for part in (jobs, running, workflows, values, data, series, pool) for route in part.routes()
    ]
    add_routes(application, front, routes, [*health.routes(), *data.open_routes(), *series.open_routes()])
