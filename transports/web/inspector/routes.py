"""The addresses of the inspector, and what answers at each."""

from typing import TYPE_CHECKING

from starlette.routing import BaseRoute, Route

from botservice.storage import Storage
from transports.web.entering.gate import Endpoint, Gate
from transports.web.inspector.actions import Actions
from transports.web.inspector.charts_page import ChartsPage
from transports.web.inspector.desk import Desk
from transports.web.inspector.list_pages import Inspector
from transports.web.inspector.turn_page import TurnPage
from transports.web.pages import Pages

if TYPE_CHECKING:
    from botservice.service import AgentService


class InspectorPages:
    """All pages of the inspector."""

    def __init__(self, pages: Pages, service: "AgentService | None" = None) -> None:
        self._desk = Desk(pages, service)

    def connect(self, storage: Storage) -> None:
        """Look into storage from now on."""
        self._desk.connect(storage)

    def routes(self, gate: Gate) -> list[BaseRoute]:
        """Return the addresses, each behind the gate."""
        lists, turn, actions = Inspector(self._desk), TurnPage(self._desk), Actions(self._desk)
        return [
            Route("/inspect", gate.guard(lists.show_lists)),
            Route("/inspect/charts", gate.guard(ChartsPage(self._desk).show)),
            Route("/inspect/t/{turn:int}", gate.guard(lists.find_turn)),
            Route("/inspect/{context:int}", gate.guard(lists.show_context)),
            Route("/inspect/{context:int}/export", gate.guard(actions.export)),
            _changing("/inspect/{context:int}/delete", gate, actions.delete),
            _changing("/inspect/{context:int}/notes/{note:int}/delete", gate, actions.delete_note),
            _changing("/inspect/t/{turn:int}/retry", gate, actions.retry),
            _changing("/inspect/t/{turn:int}/drop", gate, actions.drop),
            Route("/inspect/{context:int}/{turn:int}", gate.guard(turn.show)),
            Route("/inspect/{context:int}/{turn:int}/steps/{step:int}/{form}", gate.guard(turn.show_request)),
        ]


def _changing(path: str, gate: Gate, endpoint: Endpoint) -> Route:
    return Route(path, gate.guard(endpoint, changes=True), methods=["POST"])
