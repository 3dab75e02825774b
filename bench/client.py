"""What a call of the Python client costs its process beside one by http.client, on a connection that is kept.

python3 client.py URL SECONDS: prints, in JSON, the CPU of a call in microseconds, by request and way. client.ts runs it.
"""

import asyncio
import http.client
import json
import random
import sys
import time
import urllib.parse
import uuid

from agent_handoff import AsyncClient, Client

CALLS = 200
BODY = {"task": "x" * 500, "to": "inbox"}
URL = sys.argv[1]

connection = http.client.HTTPConnection(urllib.parse.urlsplit(URL).netloc)
client = Client(URL, "key")
async_client = AsyncClient(URL, "key")


def bare(method, path, headers, body=None):
    connection.request(method, path, body, {"Accept": "application/json", "Authorization": "Bearer key", **headers})
    return json.loads(connection.getresponse().read())


def bare_pass():
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    return bare("POST", "/api/pass", headers, json.dumps(BODY).encode())


WAYS = {
    "status": {
        "http.client": lambda: bare("GET", "/api/status/x", {}),
        "Client": lambda: client.status("x"),
        "AsyncClient": lambda: async_client.status("x"),
    },
    "pass": {
        "http.client": bare_pass,
        "Client": lambda: client.pass_(**BODY),
        "AsyncClient": lambda: async_client.pass_(**BODY),
    },
}


async def turn(call, is_async):
    before = time.process_time()
    for _ in range(CALLS):
        if is_async:
            await call()
        else:
            call()
    return (time.process_time() - before) / CALLS * 1e6


async def turns(ways):
    """All ways in turn, in a random order each time; the lower quartiles."""
    found = {name: [] for name in ways}
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end or not all(found.values()):
        for name, call in random.sample(list(ways.items()), len(ways)):
            found[name].append(await turn(call, name == "AsyncClient"))
    return {name: sorted(some)[len(some) // 4] for name, some in found.items()}


async def main():
    print(json.dumps({request: await turns(ways) for request, ways in WAYS.items()}))


asyncio.run(main())
