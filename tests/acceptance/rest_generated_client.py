#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["openapi-python-client==0.29.1"]
# ///
"""
A client that openapi-python-client has made of the interface's document submits, waits, reads and removes jobs.

Takes the directory that holds the package `made_client`, the address of the gateway and the file of its token.
"""

import argparse
import datetime
import sys
import time
from pathlib import Path


def until(said, limit):
    """The first true value of a function, asked again and again."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if found := said():
            return found
        time.sleep(0.1)
    raise SystemExit(f"it did not happen within {limit} s")


def main():
    """Do it; the last line begins with PROVEN."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("address")
    parser.add_argument("token", type=Path)
    parser.add_argument("--timeout", type=float, default=120.0)
    options = parser.parse_args()
    sys.path.insert(0, str(options.package))
    from made_client import AuthenticatedClient
    from made_client.api.default import (
        act_on_jobs,
        edit_job,
        get_job,
        get_timeline,
        get_usage,
        get_why,
        list_history,
        list_jobs,
        list_log,
        list_machines,
        list_users,
        submit_jobs,
    )
    from made_client.models import (
        ActOnJobsAction,
        JobChange,
        JobSelection,
        Problem,
        Submission,
    )

    client = AuthenticatedClient(base_url=options.address, token=options.token.read_text().strip(), timeout=60)
    proven = []

    def good(answer):
        """The answer; a refusal ends the program with its sentence."""
        if isinstance(answer, Problem):
            raise SystemExit(f"refused: {answer.detail}")
        return answer

    def require(name, true):
        if not true:
            raise SystemExit(f"{name}: this is not so")
        proven.append(name)

    with client:
        ad = {"Cmd": "/bin/true", "Arguments": "", "Iwd": "/tmp", "JobUniverse": 5, "Requirements": True}
        made = submit_jobs.sync(client=client, body=Submission.from_dict({"ad": ad, "rows": [[], []]}))
        require("submits", getattr(made, "count", 0) == 2)
        again = submit_jobs.sync(client=client, dry_run=True, body=Submission.from_dict({"ad": ad}))
        require("tries a submission", again.count == 1 and not again.cluster)

        def ended():
            found = list_history.sync(client=client, cluster=[made.cluster])
            return found if len(found.jobs) == 2 else None

        history = until(ended, options.timeout)
        require("waits", {"completed"} == {job.state for job in history.jobs})
        one = get_job.sync(client=client, id=history.jobs[0].id)
        require("reads", one.exit_code == 0 and isinstance(one.submitted, datetime.datetime))
        phases = get_timeline.sync(client=client, id=one.id).phases
        require("reads the past", phases[-1].state == "completed")
        records = list_log.sync(client=client, job=one.id).records
        require("reads the log", "job.completed/2" in [record.type_ for record in records])

        held = good(submit_jobs.sync(client=client, body=Submission.from_dict({"ad": {**ad, "JobStatus": 5}})))
        name = f"{held.cluster}.0@{held.schedd}"
        hold = JobSelection(ids=[name], expect=1, reason="wait")
        stopped = good(act_on_jobs.sync(client=client, action=ActOnJobsAction.HOLD, body=hold))
        good(get_job.sync(client=client, id=name, at_least=stopped.position or held.position))
        change = JobChange.from_dict({"attributes": {"JobPrio": 7}})
        edited = good(edit_job.sync(client=client, id=name, body=change))
        seen = get_job.sync(client=client, id=name, at_least=edited.position, fields=["JobPrio"])
        require("edits", seen.attributes.to_dict() == {"JobPrio": 7})
        require("asks why", bool(get_why.sync(client=client, id=name).sentence))
        gone = act_on_jobs.sync(
            client=client, action=ActOnJobsAction.REMOVE, body=JobSelection(ids=[name], expect=1)
        )
        require("removes", gone.outcomes[0].outcome == "done")
        left = list_jobs.sync(client=client, cluster=[held.cluster], at_least=gone.position)
        require("sees it gone", left.jobs == [])

        require("reads machines", list_machines.sync(client=client, limit=1).ads)
        require("reads users", list_users.sync(client=client).count >= 1)
        require("reads usage", get_usage.sync(client=client).total.attempts >= 2)
        refused = get_job.sync(client=client, id="999999.0")
        require("understands a refusal", isinstance(refused, Problem) and refused.code == "not_found")
    print(f"PROVEN: {', '.join(proven)}")


if __name__ == "__main__":
    main()
