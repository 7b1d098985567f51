"""What all pages of the inspector share."""

import contextlib
import hashlib
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from botservice.core.errors import BotServiceError, StorageError, StorageUnavailable
from botservice.core.policies import NANO
from botservice.people.budgets import Budgets
from botservice.storage.database import Storage
from transports.web.backend import Backend
from transports.web.pages import HEADERS, PageRenderer

if TYPE_CHECKING:
    from botservice.service import AgentService

NOT_THERE: Final = "This is not there, or not any more."
NO_CONVERSATION: Final = "There is no such conversation: it was deleted, or it never was."
NO_TURN: Final = "There is no such turn: it was deleted with its conversation, or it never was."


class InspectorSite:
    """What the pages of the inspector are made with: templates, storage, prices of models, and the service."""

    def __init__(self, pages: PageRenderer, backend: Backend, service: "AgentService | None" = None) -> None:
        self.pages = pages
        self.service = service
        self._backend = backend

    @property
    def storage(self) -> Storage:
        """The storage of the service."""
        return self._backend.storage

    @property
    def budgets(self) -> Budgets:
        """What models cost."""
        return Budgets() if self.service is None else self.service.options.budgets

    def money(self, nano: float) -> str:
        """Return an amount, given in billionths of the currency, as it is shown; empty for nothing."""
        return f"{nano / NANO:.6f}".rstrip("0").rstrip(".") + f" {self.budgets.currency}" if nano >= 1_000 else ""

    def show(self, request: Request, template: str, **values: Any) -> Response:
        """Answer with a page that browsers ask for again and again: 304 if it has not changed since."""
        response = self.pages.show(template, **values)
        tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:32]}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={**HEADERS, "ETag": tag})
        response.headers["ETag"] = tag
        return response


@contextlib.contextmanager
def refusing(prefix: str = "", missing: str = NOT_THERE) -> Iterator[None]:
    """Turn the errors of the block into refusals: what is missing, and with a prefix, what cannot be done."""
    try:
        yield
    except StorageUnavailable:
        raise
    except StorageError:
        raise HTTPException(404, missing) from None
    except BotServiceError as error:
        raise HTTPException(409, f"{prefix}{error}.") from None


def show_count(number: int) -> str:
    """Return a number for a narrow column: in full where it is short."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1_000:,.0f}k" if number < 999_500 else f"{number / 1_000_000:.1f}M"


def show_seconds(seconds: float) -> str:
    """Return a time span as it is shown."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.2f} s"
    return str(timedelta(seconds=round(seconds)))
