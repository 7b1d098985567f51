"""A front before `botservice serve`: what handlers of python-telegram-bot want is theirs, the rest goes behind.

Telegram delivers to this process. `botservice serve` runs behind it, with PUBLIC_URL set to the address of this one: it
sets the webhook, and its answer to each delivery is what Telegram gets. So what it promises holds: nothing counts as
delivered before it is stored. Run it with `uvicorn in_front:app`.
"""

import contextlib
import hmac
import json
import os
from collections.abc import AsyncIterator

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram import Update
from telegram.ext import Application, CommandHandler, ContextTypes

PATH, SECRET_HEADER = "/telegram/webhook", "X-Telegram-Bot-Api-Secret-Token"


async def hours(update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
    """Answer as this bot always did."""
    await update.message.reply_text("Monday to Friday, 9 to 18")


def wants(application: Application, update: Update) -> bool:
    """Return whether a handler of the application is for an update."""
    handlers = [handler for group in application.handlers.values() for handler in group]
    return any(handler.check_update(update) not in (None, False) for handler in handlers)


def build_app(application: Application, *, behind: str, secret: str) -> Starlette:
    """Return the web application.

    Args:
        behind: Where `botservice serve` listens.
        secret: TELEGRAM_WEBHOOK_SECRET, the same for both.
    """
    client = httpx.AsyncClient(base_url=behind, timeout=30)

    async def take(request: Request) -> Response:
        if not hmac.compare_digest(request.headers.get(SECRET_HEADER, "").encode(), secret.encode()):
            return Response("wrong or missing secret", 401)
        body = await request.body()
        update = Update.de_json(json.loads(body), application.bot)
        if wants(application, update):
            await application.process_update(update)
            return Response()
        headers = {SECRET_HEADER: secret, "content-type": "application/json"}
        try:
            reply = await client.post(PATH, content=body, headers=headers)
        except httpx.HTTPError:
            return Response("it is not there: deliver again", 503)
        return Response(reply.content, reply.status_code)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with application, client:
            yield

    return Starlette(routes=[Route(PATH, take, methods=["POST"])], lifespan=lifespan)


def build_application(token: str, api_url: str = "https://api.telegram.org") -> Application:
    """Return the handlers that are there already."""
    application = Application.builder().token(token).base_url(f"{api_url}/bot").updater(None).build()
    application.add_handler(CommandHandler("hours", hours))
    return application


if "TELEGRAM_BOT_TOKEN" in os.environ:
    app = build_app(
        build_application(os.environ["TELEGRAM_BOT_TOKEN"]),
        behind=os.environ["BOTSERVICE_URL"],
        secret=os.environ["TELEGRAM_WEBHOOK_SECRET"],
    )
