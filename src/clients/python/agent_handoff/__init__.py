"""A client for the Agent Handoff Service.

One agent passes a task, another catches it, exactly once, and reports it done.

>>> from agent_handoff import Client
>>> client = Client()  # HANDOFF_URL and HANDOFF_KEY
>>> id = client.pass_("Count the rows.", to="counter")["handoff_id"]
>>> client.wait_for(id)["result"]
"""

from typing import TYPE_CHECKING

from ._json import Answer, Answers, RawJson
from ._lease import Context
from ._operations import Approvals
from .client import Client
from ._shapes import SchemaMismatch
from .errors import HandoffError, WebhookVerificationError
from .inboxes import InboxDefinition, define_inbox
from .signatures import Jwks, SignedDecision
from .webhooks import verify_webhook

if TYPE_CHECKING:
    from .aio import AsyncClient, AsyncContext

__all__ = [
    "Answer", "Answers", "Approvals", "AsyncClient", "AsyncContext", "Client", "Context", "HandoffError",
    "InboxDefinition", "Jwks", "RawJson", "SchemaMismatch", "SignedDecision", "WebhookVerificationError",
    "define_inbox", "verify_webhook",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        # asyncio takes as long to import as nearly all else: programs that use it import it.
        if name not in ("AsyncClient", "AsyncContext"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import aio

        return getattr(aio, name)
