"""The pages of workflows, in a real browser."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.scenario.condor import Condor

from .browser import Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

NODE = """\
JOB {name} {{
    executable = {program}
    arguments = 1000
    transfer_executable = false
    request_memory = 16
    request_disk = 1024
    queue
}}
"""
LAST = "collect<b>"
"""Names are texts, whatever is in them."""
WORK = [f"fit{number}" for number in range(20)]


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    # The process of a DAG job is this Python, which an account of a slot may not reach.
    gateway = {"rest": True, "request_burst": 1e6, "requests_per_second": 1e6}
    return {"settings": {"gateway": gateway, "startd": {"job_account": "own"}}}


async def submitted(condor: Condor) -> str:
    """Twenty nodes between two, one of which runs; the cluster of the DAG job."""
    condor.environ["PATH"] += f":{Path(sys.executable).parent}"
    text = NODE.format(name="prepare", program="/bin/true")
    text += "".join(NODE.format(name=name, program="/bin/sleep") for name in WORK)
    text += NODE.format(name=LAST, program="/bin/true")
    text += f"PARENT prepare CHILD {' '.join(WORK)}\nPARENT {' '.join(WORK)} CHILD {LAST}\n"
    (condor.work / "survey.dag").write_text(text)
    said = await condor("condor_submit_dag", "-maxjobs", "1", "survey.dag")
    assert 0 == said.status, said
    (line,) = [line for line in said.out.splitlines() if "submitted to cluster" in line]
    return line.rpartition(" ")[2].rstrip(".")


async def test_a_workflow_is_seen_as_a_picture_and_followed(look: Looks, condor: Condor) -> None:
    """
    The list has it, its page the folded graph, its nodes filtered by the server, why one waits, and the time line; it is
    live, can be used by keys, and axe finds nothing, light or dark, wide or narrow.
    """
    cluster = await submitted(condor)
    async with look.at("/workflows") as seen:
        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.wait_for_selector(f"tr:has(th a:text-is('{cluster}')) .workflow-running")
        assert [] == await seen.violations()
        await seen.page.keyboard.press("j")
        await seen.page.click(f"tbody th a:text-is('{cluster}')")
        await seen.page.wait_for_selector(".counts:has-text('1 of 22 done') .node-running")
        assert ["prepare", "fit…", LAST] == await seen.page.locator("svg.dag .name").all_text_contents()
        await seen.page.wait_for_selector(".lanes rect.waits-running")
        assert [] == await seen.violations()
        await seen.picture("workflow-page.png")

        await seen.page.focus("svg.dag a:nth-of-type(2)")
        await seen.page.keyboard.press("Enter")
        await seen.page.wait_for_selector("text=Of the figure fit…")
        assert 20 == await seen.page.locator("section:has(#nodes) tbody tr").count()
        await seen.page.select_option("section:has(#nodes) [name=state]", "running")
        await seen.page.click("section:has(#nodes) button.main")
        await seen.page.wait_for_selector("text=1 of 1 on this page")
        assert 200 == await seen.go(f"/workflows/{cluster}?name=collect&why={quote(LAST)}")
        assert "It waits for fit0" in await seen.text("section:has(#why)")

        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.click("text=Halt, slow down or remove it")
        await seen.page.click("button[value=halt]")
        # The page that was sent the order may be told that it is carried out before the answer is here.
        await seen.page.wait_for_selector("[role=status]:has-text('nothing new begins')")
        await seen.page.wait_for_selector(".workflow-halted")
        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.click("text=Halt, slow down or remove it")
        await seen.page.click("button[value=remove]")
        await seen.page.wait_for_selector(".title .workflow-removed")
    assert ([], []) == (seen.said, seen.elsewhere)
    async with look.at("/workflows") as seen:
        for path in (f"/workflows/{cluster}", "/workflows"):
            await seen.require_readable(path)
