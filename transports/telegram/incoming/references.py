"""What a Telegram message holds of others: the message that it replies to, and whose it is where it is forwarded."""

from telegram import (
    Chat,
    Message,
    MessageOrigin,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
    User,
)

from botservice.messages import Author
from botservice.references import LONGEST_REFERENCE, Reference, ReferenceKind
from transports.telegram.inbound import BotIdentity
from transports.telegram.incoming.content import account_of, author_of, text_of
from transports.telegram.incoming.described import describe


def references_of(message: Message, bot: BotIdentity) -> tuple[Reference, ...]:
    """Return what a message forwards and what it replies to, with who said it.

    Telegram names the author of a message that the bot was never shown, too.
    """
    return tuple(each for each in (_forward(message, bot), _reply(message, bot)) if each is not None)


def _forward(message: Message, bot: BotIdentity) -> Reference | None:
    if message.forward_origin is None:
        return None
    author = _author(message.forward_origin)
    return _made(ReferenceKind.FORWARD, author, text_of(message, bot) or "", None, bot)


def _reply(message: Message, bot: BotIdentity) -> Reference | None:
    replied, outside = message.reply_to_message, message.external_reply
    quoted = message.quote.text if message.quote is not None else None
    if replied is not None and replied.forum_topic_created is None:
        said = quoted if quoted is not None else text_of(replied, bot)
        # Whoever forwarded it has not said it.
        author = author_of(replied) if replied.forward_origin is None else _author(replied.forward_origin)
        return _made(ReferenceKind.REPLY, author, _cut(said or ""), str(replied.message_id), bot)
    if outside is not None:
        return _made(ReferenceKind.REPLY, _author(outside.origin), _cut(quoted or describe(outside) or ""), None, bot)
    if message.reply_to_story is not None:
        return _made(ReferenceKind.REPLY, account_of(message.reply_to_story.chat), "[story]", None, bot)
    return None


def _made(
    kind: ReferenceKind, author: Author | None, text: str, external_id: str | None, bot: BotIdentity
) -> Reference:
    is_of_assistant = author is not None and author.id == str(bot.id)
    return Reference(kind, author, text, external_id, is_of_assistant)


def _author(origin: MessageOrigin) -> Author | None:
    """Return whom Telegram names: a person may hide who they are, and has a name only then."""
    if isinstance(origin, MessageOriginHiddenUser):
        return Author("telegram", None, origin.sender_user_name)
    who: User | Chat | None = None
    if isinstance(origin, MessageOriginUser):
        who = origin.sender_user
    elif isinstance(origin, MessageOriginChat):
        who = origin.sender_chat
    elif isinstance(origin, MessageOriginChannel):
        who = origin.chat
    return None if who is None else account_of(who)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_REFERENCE else f"{text[:LONGEST_REFERENCE]}…"
