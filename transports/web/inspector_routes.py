"""The addresses of the inspector, and what answers at each."""

import json
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from botservice.commands.memory import erase_note
from botservice.devtools.conversations import export_context, forget_context
from botservice.devtools.replaying import Replayer
from botservice.privacy.cleaning import clean_and_scrub
from botservice.telemetry.logs import redact
from botservice.turns.administration import drop_turn, retry_turn
from transports.web.authentication import Endpoint, PageAuthentication
from transports.web.inspector_charts import show_charts
from transports.web.inspector_lists import Inspector
from transports.web.inspector_replay import AgainPage
from transports.web.inspector_site import NO_CONVERSATION, NO_TURN, InspectorSite, refusing
from transports.web.inspector_turn import TurnPage
from transports.web.pages import HEADERS
from transports.web.requests import path_number, read_form

_MAX_FORM_BYTES = 1_000
_UNCONFIRMED = "Nothing was done: tick the box that says that you mean it."


class Actions:
    """The endpoints that change something, and the one that takes a copy."""

    def __init__(self, site: InspectorSite) -> None:
        self._site = site

    async def delete_note(self, request: Request) -> Response:
        """Delete a note of a conversation for good, and show what is left."""
        context_id, number = path_number(request, "context"), path_number(request, "note")
        storage = self._site.storage
        now = storage.now()
        await storage.write(lambda connection: erase_note(connection, context_id, number, now))
        await clean_and_scrub(storage)
        return _go(f"/inspect/{context_id}")

    async def retry(self, request: Request) -> Response:
        """Have a turn tried again, and show it."""
        turn_id, storage = path_number(request, "turn"), self._site.storage
        with refusing(missing=NO_TURN):
            await retry_turn(storage, turn_id, storage.now())
        return _go(f"/inspect/t/{turn_id}")

    async def drop(self, request: Request) -> Response:
        """End a turn without an answer, and show it."""
        await _check_confirmed(request)
        turn_id, storage = path_number(request, "turn"), self._site.storage
        with refusing(missing=NO_TURN):
            await drop_turn(storage, turn_id, storage.now())
        return _go(f"/inspect/t/{turn_id}")

    async def delete(self, request: Request) -> Response:
        """Delete a conversation with all that belongs to it, and show those that are left."""
        await _check_confirmed(request)
        context_id, storage = path_number(request, "context"), self._site.storage
        with refusing(missing=NO_CONVERSATION):
            await forget_context(storage, context_id)
        await storage.scrub()
        return _go("/inspect")

    async def export(self, request: Request) -> Response:
        """Answer with all that is kept of a conversation, as a file."""
        context_id = path_number(request, "context")
        with refusing(missing=NO_CONVERSATION):
            found = await export_context(self._site.storage, context_id)
        text = redact(json.dumps(found, indent=2, ensure_ascii=True, default=str))
        name = f'attachment; filename="conversation-{context_id}.json"'
        return Response(text, media_type="application/json", headers={**HEADERS, "Content-Disposition": name})


def _go(address: str) -> Response:
    return RedirectResponse(address, status_code=303, headers=HEADERS)


async def _check_confirmed(request: Request) -> None:
    """Refuse a form whose box of confirmation is not ticked."""
    if (await read_form(request, _MAX_FORM_BYTES)).get("confirm") != ["yes"]:
        raise HTTPException(400, _UNCONFIRMED)


def inspector_routes(site: InspectorSite, asker: Replayer | None, gate: PageAuthentication) -> list[BaseRoute]:
    """Return the addresses, each behind the gate."""
    lists, turn, actions, again = Inspector(site), TurnPage(site), Actions(site), AgainPage(site, asker)
    return [
        Route("/inspect", gate.guard(lists.show_lists)),
        Route("/inspect/charts", gate.guard(partial(show_charts, site))),
        Route("/inspect/approvals", gate.guard(lists.show_approvals)),
        Route("/inspect/t/{turn:int}", gate.guard(lists.find_turn)),
        Route("/inspect/{context:int}", gate.guard(lists.show_context)),
        Route("/inspect/{context:int}/export", gate.guard(actions.export)),
        _changing("/inspect/{context:int}/delete", gate, actions.delete),
        _changing("/inspect/{context:int}/notes/{note:int}/delete", gate, actions.delete_note),
        _changing("/inspect/t/{turn:int}/retry", gate, actions.retry),
        _changing("/inspect/t/{turn:int}/drop", gate, actions.drop),
        Route("/inspect/{context:int}/{turn:int}", gate.guard(turn.show)),
        Route("/inspect/{context:int}/{turn:int}/steps/{step:int}/{form}", gate.guard(turn.show_request)),
        Route("/inspect/{context:int}/{turn:int}/again", gate.guard(again.form)),
        _changing("/inspect/{context:int}/{turn:int}/again", gate, again.ask),
    ]


def _changing(path: str, gate: PageAuthentication, endpoint: Endpoint) -> Route:
    return Route(path, gate.guard(endpoint, changes=True), methods=["POST"])
