"""A client for the Agent Handoff Service.

One agent passes a task, another catches it, exactly once, and reports it done.

>>> from agent_handoff import Client
>>> client = Client()  # HANDOFF_URL and HANDOFF_KEY
>>> id = client.pass_("Count the rows.", to="counter")["handoff_id"]
>>> client.wait_for(id)["result"]
"""

from ._json import Answer, Answers, RawJson
from ._lease import Context
from ._operations import Approvals
from .aio import AsyncClient, AsyncContext
from .client import Client
from .errors import HandoffError, WebhookVerificationError
from .webhooks import verify_webhook

__all__ = [
    "Answer", "Answers", "Approvals", "AsyncClient", "AsyncContext", "Client", "Context", "HandoffError", "RawJson",
    "WebhookVerificationError", "verify_webhook",
]
