"""Trying a bot's settings against the real Bot API, and saying what to do."""

from telegram.error import InvalidToken, TelegramError

from botservice.core.errors import BotServiceError
from transports.telegram.client import BotClient
from transports.telegram.failures import reason_of
from transports.telegram.updates import PATH

_ANSWER_SECONDS = 10.0


async def check_bot(token: str, api_url: str, public_url: str | None, *, listens: bool = False) -> str:
    """Return who the bot is and how it is reached. Nothing is changed at Telegram.

    Args:
        listens: Whether it is to hear what does not address it in groups.

    Raises:
        BotServiceError: something is wrong; the message says what to do.
    """
    client = BotClient(token, api_url)
    try:
        me = await client.call("getMe", timeout_seconds=_ANSWER_SECONDS)
        webhook = await client.call("getWebhookInfo", timeout_seconds=_ANSWER_SECONDS)
    except InvalidToken as error:
        raise BotServiceError(
            "TELEGRAM_BOT_TOKEN is refused: copy it again from @BotFather (/mybots, API Token)"
        ) from error
    except TelegramError as error:
        raise BotServiceError(
            f"{api_url} does not answer as a Bot API server does ({reason_of(error)}): "
            "is there a way to it from here, and is TELEGRAM_API_URL right?"
        ) from error
    finally:
        await client.close_connections()
    name = f"@{me.get('username')}"
    note = "" if api_url.rstrip("/") == _TELEGRAM else _OWN_SERVER
    hears = "hears every message of its groups" if me.get("can_read_all_group_messages") else _PRIVACY
    if listens and hears is _PRIVACY:
        hears += _DEAF
    if public_url is None:
        polled = f"{name} answers and is polled; it {hears}"
        address = webhook.get("url")
        has_address = f". It has a webhook now ({address}), {_TAKEN_AWAY}" if address else ""
        return f"{polled}{has_address}{note and '.'}{note}"
    return f"{name} answers; it {hears}. {_judge_webhook(webhook, public_url)}{note and '.'}{note}"


_PRIVACY = (
    "hears only what is meant for it in groups (@BotFather, /setprivacy, Disable lets it hear what it may need to know)"
)
_DEAF = ", so GROUP_ANSWERS=listening works only in groups where the bot is an administrator"
_TELEGRAM = "https://api.telegram.org"
_OWN_SERVER = " Your own Bot API server with --local: its folder has to be readable here, under the same path."
_TAKEN_AWAY = "which `serve` takes away, because PUBLIC_URL is unset"


def _judge_webhook(webhook: dict[str, object], public_url: str) -> str:
    """Return what the webhook is."""
    wanted, address = public_url.rstrip("/") + PATH, webhook.get("url")
    if not address:
        return f"Its webhook is not set yet: `serve` sets it to {wanted}"
    if address != wanted:
        return f"Its webhook is {address}: `serve` sets it to {wanted}. Is the token used by another service?"
    if webhook.get("last_error_message"):
        raise BotServiceError(
            f"Telegram could not deliver to {wanted}: {webhook['last_error_message']}. "
            "Is `serve` running there, with a certificate that Telegram accepts?"
        )
    return f"Its webhook is {wanted}"
