"""Which page is shown by what."""

from collections.abc import Mapping
from typing import Final

from kettle_services.gateway.pages.cluster_page import CLUSTER, ClusterPage
from kettle_services.gateway.pages.home_page import HOME, HomePage
from kettle_services.gateway.pages.job_actions import ACT, JobActions
from kettle_services.gateway.pages.job_edits import EDIT, JobEdits
from kettle_services.gateway.pages.job_files_page import JOB_FILES, JobFilesPage
from kettle_services.gateway.pages.job_page import JOB, JobPage
from kettle_services.gateway.pages.jobs_page import HISTORY, JOBS, PAST, QUEUES, JobsPage
from kettle_services.gateway.pages.page import Form, Handler, Page
from kettle_services.gateway.pages.pool.wiring import POOL_PAGES, pool_handlers
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.submit_page import CHECK, SEND, SUBMIT, SubmitPage
from kettle_services.gateway.pages.task_queues.actions import CANCEL, QueueActions
from kettle_services.gateway.pages.task_queues.list_page import TASK_QUEUES, TaskQueuesPage
from kettle_services.gateway.pages.task_queues.queue_page import TASK_QUEUE, TaskQueuePage
from kettle_services.gateway.pages.terminal_page import TERMINAL, TerminalPage
from kettle_services.gateway.pages.work_sessions.actions import ACT_ON_SESSION, SessionActions
from kettle_services.gateway.pages.work_sessions.list_page import SESSIONS, SessionsPage
from kettle_services.gateway.pages.work_sessions.session_page import SESSION, SessionPage
from kettle_services.gateway.pages.workflows.actions import ACT_ON_WORKFLOW, WorkflowActions
from kettle_services.gateway.pages.workflows.list_page import WORKFLOWS, WorkflowsPage
from kettle_services.gateway.pages.workflows.workflow_page import WORKFLOW, WorkflowPage

PAGES: Final = (
    HOME,
    JOBS,
    WORKFLOWS,
    WORKFLOW,
    SESSIONS,
    SESSION,
    TASK_QUEUES,
    TASK_QUEUE,
    SUBMIT,
    HISTORY,
    JOB,
    JOB_FILES,
    TERMINAL,
    CLUSTER,
    *POOL_PAGES,
)
"""In any order: each says itself where it stands in the navigation."""


def page_handlers(questions: Questions, documentation: str = "") -> Mapping[Page | Form, Handler]:
    """All of them; `documentation`: where pages of the documentation are, empty: nobody knows."""
    submit, job = SubmitPage(questions), JobPage(questions)
    return {
        SUBMIT: submit.show,
        SEND: submit.send,
        CHECK: submit.check,
        JOBS: JobsPage(questions, QUEUES).show,
        HISTORY: JobsPage(questions, PAST).show,
        JOB: job.show,
        JOB_FILES: JobFilesPage(questions).show,
        TERMINAL: TerminalPage(questions).show,
        EDIT: JobEdits(questions, job).edit,
        HOME: HomePage(questions).show,
        ACT: JobActions(questions).act,
        CLUSTER: ClusterPage(questions).show,
        WORKFLOWS: WorkflowsPage(questions).show,
        WORKFLOW: WorkflowPage(questions).show,
        ACT_ON_WORKFLOW: WorkflowActions(questions).act,
        SESSIONS: SessionsPage(questions).show,
        SESSION: SessionPage(questions).show,
        ACT_ON_SESSION: SessionActions(questions).act,
        TASK_QUEUES: TaskQueuesPage(questions).show,
        TASK_QUEUE: TaskQueuePage(questions).show,
        CANCEL: QueueActions(questions).cancel,
        **pool_handlers(questions, documentation),
    }
