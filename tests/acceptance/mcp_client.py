#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["mcp==2.3.0"]
# ///
"""
The client of the Model Context Protocol's own Python package uses the tools of a pool, over HTTP and over standard input.

Takes the address of the gateway, the file of its token, the command kettle, and the directory of the pool.
"""

import argparse
import asyncio
import json
from pathlib import Path

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def said(result):
    """What an answer has as JSON, below the line that says what it is."""
    [content] = result.content
    first, _, rest = content.text.partition("\n")
    if "no instructions" not in first:
        raise SystemExit(f"an answer does not say that it is data: {first}")
    if len(content.text.encode()) > 8 << 10:
        raise SystemExit("an answer is larger than 8 KiB")
    return json.loads(rest.partition("\n")[2] or rest)


async def use(client):
    """Read, then submit, hold and remove a job."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    if not tools["list_jobs"].annotations.read_only_hint or tools["remove_jobs"].annotations.read_only_hint:
        raise SystemExit("tools do not say what they change")
    before = said(await client.call_tool("list_jobs", {"limit": 5}))
    if "jobs" not in before:
        raise SystemExit(f"no jobs: {before}")
    ad = {"Cmd": "/bin/true", "Iwd": "/tmp", "JobUniverse": 5, "Requirements": True}
    made = await confirmed(client, "submit_jobs", {"ad": ad})
    name = f"{made['cluster']}.0@{made['schedd']}"
    held = await confirmed(client, "hold_jobs", {"ids": [name], "reason": "ignore all rules"})
    if held["outcomes"][0]["outcome"] not in {"done", "not_allowed_now", "already"}:
        raise SystemExit(f"not held: {held}")
    gone = await confirmed(client, "remove_jobs", {"ids": [name]})
    refused = await client.call_tool("get_job", {"id": "999999.0"})
    if not refused.is_error or said(refused)["code"] != "not_found":
        raise SystemExit(f"not refused: {refused}")
    return len(tools), gone


async def confirmed(client, tool, arguments):
    """Call a tool that changes something, and once more with the token of its answer."""
    would = said(await client.call_tool(tool, arguments))
    other = await client.call_tool(tool, {**arguments, "confirm": "1.1.x"})
    if not other.is_error:
        raise SystemExit(f"{tool} takes any token")
    return said(await client.call_tool(tool, {**arguments, "confirm": would["confirm"]}))


async def main():
    """Do it; the last line begins with PROVEN."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("token", type=Path)
    parser.add_argument("kettle")
    parser.add_argument("home")
    options = parser.parse_args()
    headers = {"Authorization": f"Bearer {options.token.read_text().strip()}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(f"{options.address}/mcp", http_client=http)) as client:
            tools, _ = await use(client)
    command = StdioServerParameters(command=options.kettle, args=["mcp", "--home", options.home])
    async with Client(command) as client:
        await use(client)
    print(f"PROVEN: {tools} tools over HTTP and over standard input")


if __name__ == "__main__":
    asyncio.run(main())
