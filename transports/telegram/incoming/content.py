"""What a Telegram message says, as text: what is written, and in brackets what is sent besides words."""

from collections.abc import Mapping

from telegram import Chat, Message, MessageEntity, User

from botservice.messages import Author
from transports.telegram.inbound import BotIdentity
from transports.telegram.incoming.described import describe, describe_newer
from transports.telegram.incoming.message_fields import FILES
from transports.telegram.incoming.rich_messages import words_of

_HOLDING = ("forward_origin", "reply_to_message", "external_reply", "reply_to_story")
_ADDRESSING = ("mention", "text_mention", "bot_command")


def author_of(message: Message) -> Author | None:
    """Return who wrote a message: a person, or a chat in whose name somebody writes."""
    sender: User | Chat | None = message.sender_chat or message.from_user
    return None if sender is None else account_of(sender)


def account_of(sender: User | Chat) -> Author:
    """Return a person or a chat as an author."""
    return Author("telegram", str(sender.id), _name(sender))


def text_of(message: Message, bot: BotIdentity) -> str | None:
    """Return what a message says, whoever wrote it; None where it only reports that something happened in the chat."""
    said = _written(message, bot)
    if message.text is not None:  # then it is all that there is
        return said or ""
    described = describe(message)
    if said is None and described is None and not has_file(message):
        return describe_newer(message)
    return "\n".join(part for part in (described, said) if part)


def own_words_of(message: Message, bot: BotIdentity) -> str:
    """Return what of a message its author wrote themselves: nothing that is forwarded, described or a bot's."""
    is_of_others = message.forward_origin is not None or message.via_bot is not None
    return "" if is_of_others else _written(message, bot) or ""


def is_forwarded(message: Message) -> bool:
    """Return whether all that a message says and brings is another's."""
    return message.forward_origin is not None


def holds_others(message: Message) -> bool:
    """Return whether a message forwards something, or replies to it."""
    return any(getattr(message, name) is not None for name in _HOLDING)


def is_addressed(message: Message, bot: BotIdentity) -> bool:
    """Return whether the bot is meant: in a group only if it is mentioned, replied to or given a command."""
    if message.chat.type in (Chat.PRIVATE, Chat.SENDER):
        return True
    if message.from_user is not None and message.from_user.is_bot and message.sender_chat is None:
        return False
    replied = message.reply_to_message
    is_reply = (
        replied is not None
        and replied.from_user is not None
        and replied.from_user.id == bot.id
        and replied.forum_topic_created is None
    )
    return is_reply or any(_means(entity, text, bot) for entity, text in _entities(message).items())


def _means(entity: MessageEntity, text: str, bot: BotIdentity) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == bot.id
    if entity.type == MessageEntity.MENTION:
        return bot.is_called(text)
    _, at, name = text.partition("@")
    return entity.offset == 0 and (not at or bot.is_called(name))


def _entities(message: Message) -> Mapping[MessageEntity, str]:
    kinds: list[str | None] = [*_ADDRESSING]
    return message.parse_entities(kinds) if message.text is not None else message.parse_caption_entities(kinds)


def _written(message: Message, bot: BotIdentity) -> str | None:
    """Return text or caption, without the bot's name in front of it."""
    text = message.text if message.text is not None else message.caption
    text = text if text is not None else words_of(message.api_kwargs.get("rich_message")) or None
    if text is None:
        return None
    first, _, rest = text.lstrip().partition(" ")
    return rest.strip() if rest.strip() and first.startswith("@") and bot.is_called(first) else text


def _name(sender: User | Chat) -> str:
    return sender.full_name or getattr(sender, "title", None) or getattr(sender, "username", None) or str(sender.id)


def has_file(message: Message) -> bool:
    """Return whether anything came with a message that may be fetched."""
    return any(getattr(message, name) for name in FILES)
