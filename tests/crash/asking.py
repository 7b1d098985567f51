"""People who ask for payments on Telegram or in Slack, and press what stands under the question that they get."""

from typing import Any, Protocol

from crash.served import ServedBot
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply, ToolUse
from standins.slack_api import SlackApi


def cashier(body: dict[str, Any]) -> Reply:
    """Transfer what an invoice says, then answer with what came of it."""
    last = body["messages"][-1]
    invoice = invoice_of(body)
    if last["role"] == "tool":
        return Reply(text=f"done {invoice}: {last['content']}", delay=0.02)
    return Reply(tool_calls=[ToolUse("transfer", {"invoice": invoice})], delay=0.02)


def invoice_of(body: dict[str, Any]) -> str:
    """Return which invoice a prompt is about."""
    last_user = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    return str(last_user["content"]).removeprefix("pay ")


class Wire(Protocol):
    """A person who asks, and decides.

    Attributes:
        keeps_presses: Whether a press while nobody listens is told to whoever comes next.
    """

    keeps_presses: bool

    def settings(self, llm: OpenAIApi) -> dict[str, str]:
        """Return what a process needs to be reached, and to reach the model."""

    def reach(self, bot: ServedBot) -> None:
        """Have the platform deliver to a process from now on."""

    def say(self, text: str, chat: int = 0) -> None: ...

    def asks(self, chat: int = 0) -> int:
        """Return how many questions with buttons are to be seen."""

    def press(self, label: str, chat: int = 0) -> None:
        """Press what stands under the newest question."""

    def texts(self, chat: int = 0) -> list[str]: ...

    def wait(self, condition: Any, seconds: float = 60) -> None: ...


class TelegramWire:
    """People on Telegram, each in a chat with the bot."""

    def __init__(self, api: BotApi, *, is_polled: bool) -> None:
        self.api = api
        self.is_polled = is_polled
        self.keeps_presses = True  # they wait for whoever comes next

    def settings(self, llm: OpenAIApi) -> dict[str, str]:
        wires = {"TELEGRAM_BOT_TOKEN": self.api.token, "TELEGRAM_API_URL": self.api.url, **_model(llm)}
        return wires if self.is_polled else {**wires, "PUBLIC_URL": "https://bot.example"}

    def reach(self, bot: ServedBot) -> None:
        if not self.is_polled:
            self.api.reach_webhooks_at(bot.url)

    def say(self, text: str, chat: int = 0) -> None:
        self.api.person_says(text, chat_id=1000 + chat)

    def asks(self, chat: int = 0) -> int:
        return len(self._questions(chat))

    def press(self, label: str, chat: int = 0) -> None:
        newest = self._questions(chat, label)[-1]
        row = next(each for row in newest.buttons for each in row if each["text"] == label)
        self.api.person_presses(newest.chat_id, newest.message_id, row["callback_data"])

    def texts(self, chat: int = 0) -> list[str]:
        return list(self.api.visible_texts(1000 + chat))

    def wait(self, condition: Any, seconds: float = 60) -> None:
        self.api.wait_until(condition, timeout=seconds, what="it comes about")

    def _questions(self, chat: int, label: str = "Deny") -> list[Any]:
        shown = self.api.visible_messages(1000 + chat, from_bot=True)
        return [each for each in shown if any(button["text"] == label for row in each.buttons for button in row)]


class SlackWire:
    """People in Slack, each in a direct message with the bot."""

    keeps_presses = False  # a press is told once

    def __init__(self, api: SlackApi, *, is_socket: bool) -> None:
        self.api = api
        self.is_socket = is_socket
        api.events.retry_seconds = (0.02, 0.1)
        for number in range(300):
            user, channel = f"U1{number:03}", f"D1{number:03}"
            api.world.users[user] = {"id": user, "name": user.lower(), "profile": {"display_name": user}}
            api.world.ims[user], api.world.channels[channel] = channel, {user, "U0BOT"}

    def settings(self, llm: OpenAIApi) -> dict[str, str]:
        wires = {"SLACK_BOT_TOKEN": self.api.bot_token, "SLACK_API_URL": self.api.url, **_model(llm)}
        secret = {"SLACK_APP_TOKEN": self.api.app_token}
        return {**wires, **(secret if self.is_socket else {"SLACK_SIGNING_SECRET": self.api.signing_secret})}

    def reach(self, bot: ServedBot) -> None:
        if not self.is_socket:
            self.api.events.http_url = f"{bot.url}/slack/events"

    def say(self, text: str, chat: int = 0) -> None:
        self.api.person_says(text, channel=f"D1{chat:03}", user=f"U1{chat:03}")

    def asks(self, chat: int = 0) -> int:
        return len(self._questions(chat))

    def press(self, label: str, chat: int = 0) -> None:
        newest = self._questions(chat)[-1]
        rows = [block["elements"] for block in newest.blocks if block["type"] == "actions"]
        element = next(each for row in rows for each in row if each["text"]["text"] == label)
        self.api.press(newest, element, user=f"U1{chat:03}")

    def texts(self, chat: int = 0) -> list[str]:
        return list(self.api.said(f"D1{chat:03}"))

    def wait(self, condition: Any, seconds: float = 60) -> None:
        self.api.wait(condition, timeout=seconds)

    def _questions(self, chat: int) -> list[Any]:
        posts = self.api.bot_posts(f"D1{chat:03}")
        return [each for each in posts if any(block["type"] == "actions" for block in each.blocks)]


def _model(llm: OpenAIApi) -> dict[str, str]:
    return {"OPENAI_BASE_URL": llm.base_url, "OPENAI_MODEL": "gpt-5.5"}
