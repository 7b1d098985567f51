"""Tools that the model's server runs itself: they are only named in the request."""

from collections.abc import Mapping
from typing import Any, Final

from botservice.agent.tool import Tool


async def _nothing() -> str:
    """Run at the server of the model alone."""
    return "Error: this is not run here; go on without it."


class HostedTool(Tool):
    """A tool of the model's server. If the server does not have it, the model is asked without it.

    Attributes:
        schema: What is sent, in the form of Responses.
    """

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        super().__init__(_nothing, name=name, idempotent=True, reads_untrusted=True)
        self.schema = schema


# An unnamed place: without one, the server searches as if everybody were in the United States.
WEB_SEARCH: Final = HostedTool("web_search", {"type": "web_search", "user_location": {"type": "approximate"}})
"""OpenAI's own search of the web, by Responses. Source: OpenAI API, "Web search"."""
