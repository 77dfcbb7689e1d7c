"""The state machine of one attempt at work: it is fed what happens, and what it says is carried out."""

import time
from typing import Final, assert_never

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import ReportMessage
from kettle.execution.job_environment.job_ad import JobAd
from kettle.stimuli.stimulus_log import open_log
from kettle_services.starter.deadlines import Deadlines
from kettle_services.starter.domain.instructions import Instruction, Work
from kettle_services.starter.domain.state import StarterPhase, StarterState
from kettle_services.starter.domain.step import step
from kettle_services.starter.domain.stimuli import Stimulus
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.parts import StarterParts
from kettle_services.starter.reports.composition import ReportComposer
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_services.starter.stimulus_log import VARIABLE, RecordedStep
from kettle_wire.worker_reports import Body, Continued, Report, Suspended


class AttemptMachine:
    """
    The state of one attempt, and the instructions that are carried out at once: on its processes, its deadlines and what is
    reported of it.  What is to be done next is in `work`.
    """

    def __init__(
        self,
        spec: JobSpec,
        job: JobAd,
        deadlines: Deadlines,
        reporter: ReportComposer,
        parts: StarterParts,
        line: StartdConnection,
        state: StarterState,
    ) -> None:
        self._job: Final = job
        self._deadlines: Final = deadlines
        self._reporter: Final = reporter
        self._parts: Final = parts
        self._line: Final = line
        self._log = open_log(VARIABLE, spec.id.name)
        if self._log is not None:
            self._log.add(state)
        self.state = state
        self.work = Work.START
        self.started: Report | None = None
        """The report that the program runs."""
        self._suspension: Report | None = None
        """What was last said of it: to be said again and again, because a report that is not final may be lost."""
        self.ended_at = 0.0
        """When the last program of the job had ended, as a time of the wall's clock."""

    def feed(self, stimulus: Stimulus, tree: ProcessTree) -> None:
        """
        Something has happened while `tree` was looked after: what follows from that is done when this returns.
        """
        self.state, instructions = step(self.state, stimulus)
        if self._log is not None:
            self._log.add(RecordedStep(stimulus, self.state))
            if self.state.phase is StarterPhase.OVER:
                self._log.close()
        for instruction in instructions:
            if isinstance(instruction, Work):
                self.work = instruction
            else:
                self._carry_out(instruction, tree)

    def _carry_out(self, instruction: Instruction, tree: ProcessTree) -> None:  # noqa: C901, PLR0912 - a case each
        match instruction:
            case Instruction.SAY_STARTED:
                self.started = self._reporter.report(self._parts.transfers.started(tree.pid))
                self._line.send(ReportMessage(self.started))
            case Instruction.COUNT_EXECUTION:
                self._deadlines.runs()
            case Instruction.STOP_COUNTING:
                self._deadlines.rests()
            case Instruction.PUBLISH:
                self._parts.publisher.begin(tree)
            case Instruction.END_PROCESSES:
                self.ended_at = time.time()
                self._parts.end_processes(tree)
            case Instruction.ASK_TO_END:
                assert self.state.ending is not None
                self._deadlines.asked_to_end()
                tree.signal(self._job.kill_signal(self.state.ending.code))
            case Instruction.KILL:
                self._deadlines.killed()
                tree.signal(9)
            case Instruction.SUSPEND:
                processes = tree.suspend()
                self._say_suspension(Suspended(at=time.time(), processes=processes))
            case Instruction.RESUME:
                tree.resume()
            case Instruction.CONTINUE:
                at = time.time()
                tree.resume()  # it may run from then on, and we may be slow to say so
                self._say_suspension(Continued(at=at))
            case Instruction.SAY_CONTINUED:
                self._say_suspension(Continued(at=time.time()))
            case Instruction.REPEAT_SUSPENSION:
                self.repeat_suspension()
            case _:
                assert_never(instruction)

    def _say_suspension(self, body: Body) -> None:
        self._suspension = self._reporter.report(body)
        self.repeat_suspension()

    def repeat_suspension(self) -> None:
        """Say the last word on the suspension again, if there was one."""
        if self._suspension is not None:
            self._line.send(ReportMessage(self._suspension))
