"""The Bolt application: what Slack delivers goes through it, and is stored before it is acknowledged."""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncAuthorize
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from botservice.errors import BotServiceError
from transports.slack.incoming.intake import Intake

logger = logging.getLogger(__name__)

_BOLT_LOGGER = "slack_bolt.of_botservice"

_ANYTHING = re.compile("")

Take = Callable[[Mapping[str, Any]], Awaitable[None]]


class _NotStored(BotServiceError):
    """Something that came in is not stored."""


class _AnyWorkspace(AsyncAuthorize):
    """Lets everything through that Slack has signed: no call is made before an event is stored."""

    def __init__(self) -> None:
        """Nothing is needed."""

    async def __call__(
        self,
        *,
        context: AsyncBoltContext,  # noqa: ARG002 - the interface
        enterprise_id: str | None,
        team_id: str | None,
        user_id: str | None,
        actor_enterprise_id: str | None = None,  # noqa: ARG002 - the interface
        actor_team_id: str | None = None,  # noqa: ARG002 - the interface
        actor_user_id: str | None = None,  # noqa: ARG002 - the interface
    ) -> AuthorizeResult | None:
        return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, user_id=user_id)


def build_bolt(intake: Intake, *, api_url: str, signing_secret: str | None) -> AsyncApp:
    """Return an application whose listeners store and return; an answer of 503 asks Slack to deliver again.

    Args:
        signing_secret: None where nothing comes by HTTP.
    """
    quiet = logging.getLogger(_BOLT_LOGGER)
    quiet.setLevel(logging.ERROR)  # it warns of a token in the environment, and of every event that is nobody's
    app = AsyncApp(
        name=_BOLT_LOGGER,  # Bolt sets the level of the logger of this name, so it must not be ours
        logger=quiet,
        client=AsyncWebClient(base_url=api_url),
        authorize=_AnyWorkspace(),  # type: ignore[arg-type]  # Bolt takes it, and names only functions
        signing_secret=signing_secret or "",
        request_verification_enabled=signing_secret is not None,
        process_before_response=True,
        ignoring_self_events_enabled=False,  # other bots are ignored as well, by what an event says
        attaching_conversation_kwargs_enabled=False,
    )

    app.event(_ANYTHING)(_storing(intake.take_event))
    app.command(_ANYTHING)(_storing(intake.take_command))
    interaction = _storing(intake.take_interaction)
    app.shortcut(_ANYTHING)(interaction)
    app.action(_ANYTHING)(interaction)
    app.view(_ANYTHING)(interaction)
    app.error(_fail)
    return app


def _storing(take: Take) -> Callable[[AsyncAck, dict[str, Any]], Awaitable[None]]:
    async def listener(ack: AsyncAck, body: dict[str, Any]) -> None:
        try:
            await take(body)
        except (BotServiceError, TimeoutError) as error:
            logger.warning("slack.not_stored", extra={"reason": str(error) or type(error).__name__})
            raise _NotStored from error
        except Exception as error:  # a border: Slack is asked to deliver again, whatever it was
            logger.exception("slack.not_stored")
            raise _NotStored from error
        await ack()

    return listener


async def _fail(error: Exception) -> BoltResponse:
    """Answer what was not stored, so that it comes again; what Bolt stumbles over never will be read."""
    if isinstance(error, _NotStored):
        return BoltResponse(status=503, body="not stored: deliver it again")
    logger.warning("slack.unreadable", extra={"reason": type(error).__name__})
    return BoltResponse(status=400, body="unreadable")
