"""The addresses of the inspector, and what answers at each."""

from starlette.routing import BaseRoute, Route

from botservice.again.asker import Asker
from transports.web.entering.gate import Endpoint, Gate
from transports.web.inspector.actions import Actions
from transports.web.inspector.ask_again_page import AgainPage
from transports.web.inspector.charts_page import ChartsPage
from transports.web.inspector.desk import Desk
from transports.web.inspector.list_pages import Inspector
from transports.web.inspector.turn_page import TurnPage


def inspector_routes(desk: Desk, asker: Asker | None, gate: Gate) -> list[BaseRoute]:
    """Return the addresses, each behind the gate."""
    lists, turn, actions, again = Inspector(desk), TurnPage(desk), Actions(desk), AgainPage(desk, asker)
    return [
        Route("/inspect", gate.guard(lists.show_lists)),
        Route("/inspect/charts", gate.guard(ChartsPage(desk).show)),
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


def _changing(path: str, gate: Gate, endpoint: Endpoint) -> Route:
    return Route(path, gate.guard(endpoint, changes=True), methods=["POST"])
