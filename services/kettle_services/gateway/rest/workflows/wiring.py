"""Which question about workflows is answered by what."""

from kettle.bus.ports import Bus
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Handler
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.jobs import JobQuestions
from kettle_services.gateway.rest.streams import Streams
from kettle_services.gateway.rest.workflows.access import WorkflowAccess
from kettle_services.gateway.rest.workflows.feed import WorkflowFeed
from kettle_services.gateway.rest.workflows.making import NewWorkflows
from kettle_services.gateway.rest.workflows.orders import WorkflowOrders
from kettle_services.gateway.rest.workflows.pictures import WorkflowPictures
from kettle_services.gateway.rest.workflows.questions import WorkflowQuestions
from kettle_services.gateway.rest.workflows.rerunning import Reruns
from kettle_wire.rest import workflow_making, workflow_views, workflows
from kettle_wire.rest.route import Route


def workflow_handlers(
    access: WorkflowAccess,
    new: NewWorkflows,
    again: Reruns,
    bus: Bus,
    streams: Streams,
    people: PersonConnections,
    access_points: AccessPoints,
    jobs: JobQuestions,
    freshness: Freshness,
) -> dict[Route, Handler]:
    """All of them."""
    asked = WorkflowQuestions(bus, access, jobs.list, jobs.get, freshness)
    pictures = WorkflowPictures(access)
    done = WorkflowOrders(people, access_points, access)
    return {
        workflows.LIST_WORKFLOWS: asked.workflows,
        workflows.GET_WORKFLOW: asked.get,
        workflows.LIST_NODES: asked.nodes,
        workflows.GET_NODE_WHY: asked.why,
        workflows.CONTROL_WORKFLOW: done.control,
        workflows.CHANGE_LIMITS: done.change,
        workflows.DELETE_WORKFLOW: done.delete,
        workflow_views.GET_GRAPH: pictures.graph,
        workflow_views.GET_WORKFLOW_TIMELINE: pictures.timeline,
        workflow_views.FOLLOW_WORKFLOW_EVENTS: WorkflowFeed(access, streams).follow,
        workflow_making.SUBMIT_WORKFLOW: new.submit,
        workflow_making.RERUN_WORKFLOW: again.rerun,
    }
