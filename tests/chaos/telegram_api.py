"""The platform of the chaos suite: it knows which process showed each message."""

from typing import Any

from chaos.repeats import Doing
from standins.bot_api import BotApi, Call, CallAnswered, CallReceived, MessageShown, Outcome
from standins.serving import Exchange


class TelegramApi(BotApi):
    """Telegram's stand-in, which notes who makes the calls that it follows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._process_of: dict[int, str] = {}

    async def _effect(self, exchange: Exchange, call: Call) -> Any:
        self._process_of[call.seq] = exchange.headers.get("x-process", "")
        return await super()._effect(exchange, call)

    def shown(self) -> list[Doing]:
        """Return each message of the bot as it was shown, in the order of time."""
        received_at = {call.seq: call.at for call in self.journal.entries(CallReceived)}
        lost = {call.call_seq for call in self.journal.entries(CallAnswered) if call.outcome is Outcome.LOST}
        return [
            Doing(
                f"{each.chat_id} is shown {each.text}",
                self._process_of[each.call_seq],
                received_at[each.call_seq],
                each.call_seq in lost,
            )
            for each in self.journal.entries(MessageShown)
            if each.from_bot and each.call_seq is not None
        ]
