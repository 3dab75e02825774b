"""Makes calls for test/helpers/callers.ts: reads lines of JSON, and answers each with one of the same number.

They are {"n", "open": "Client" or "AsyncClient", "url", "key", "options"}, {"n", "of": the number of that line, "call"},
and {"n", "close": the number of that line}.
"""

import asyncio
import json
import sys
import threading

import agent_handoff

from .common import called, called_async

clients = {}
saying = threading.Lock()
loop = asyncio.new_event_loop()


def say(n, value):
    with saying:
        print(json.dumps({"n": n, "value": value}), flush=True)


def run(said):
    client = clients[said.get("of", said.get("close"))]
    try:
        if isinstance(client, agent_handoff.AsyncClient):
            value = asyncio.run_coroutine_threadsafe(run_async(client, said), loop).result()
        elif "close" in said:
            value = client.close()
        else:
            value = called(client, said["call"])
    except Exception as error:
        value = {"raised": repr(error)}
    say(said["n"], value)


async def run_async(client, said):
    return await (client.aclose() if "close" in said else called_async(client, said["call"]))


threading.Thread(target=loop.run_forever, daemon=True).start()
for line in sys.stdin:
    said = json.loads(line)
    if "open" in said:
        kind = getattr(agent_handoff, said["open"])
        clients[said["n"]] = kind(said["url"], said["key"], **said["options"])
        say(said["n"], None)
    else:
        threading.Thread(target=run, args=(said,)).start()
