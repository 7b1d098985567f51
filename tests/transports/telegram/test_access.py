"""Who is let in on Telegram: a group by whoever added the bot, a person by name. Files of strangers are not fetched."""

from typing import Any

from standins.bot_api import BotApi

from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.texts import in_language

GROUP = -100500
USER = {"is_bot": False, "first_name": "Somebody"}


def added(api: BotApi, by: int, *, old: str = "left", new: str = "member", chat_id: int = GROUP) -> None:
    """Have a person change what the bot is in a group."""
    bot = {"id": int(api.token.partition(":")[0]), "is_bot": True, "first_name": "Bot"}
    api.push_update(
        {
            "my_chat_member": {
                "chat": {"id": chat_id, "type": "supergroup", "title": "Group"},
                "from": {"id": by, **USER},
                "date": 1_700_000_000,
                "old_chat_member": {"status": old, "user": bot},
                "new_chat_member": {"status": new, "user": bot},
            }
        }
    )


def gate() -> Access:
    return Access(AccessMode.ALLOW, owners=frozenset({"telegram:42"}))


async def test_a_group_is_answered_when_a_member_has_added_the_bot(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, type="supergroup")
    async with bot_on(api, access=gate()):
        added(api, by=7)
        api.person_says(f"@{api.username} hello", chat_id=GROUP, user=7)
        await api.until(lambda: api.visible_texts(GROUP) == [in_language("access.group", "en")])
        added(api, by=7, old="member", new="left")
        added(api, by=42)
        added(api, by=7, old="member", new="administrator")  # whoever promotes it has not brought it
        api.person_says(f"@{api.username} hello again", chat_id=GROUP, user=7)
        await api.until(lambda: api.visible_texts(GROUP)[-1:] == ["You said: hello again"])


async def test_a_group_that_moves_stays_let_in(api: BotApi, bot_on: Any) -> None:
    api.add_group(-500, type="group")
    async with bot_on(api, access=gate()):
        added(api, by=42, chat_id=-500)
        api.person_says(f"@{api.username} hello", chat_id=-500, user=7)
        await api.until(lambda: api.visible_texts(-500)[-1:] == ["You said: hello"])
        api.migrate(-500, GROUP)
        api.person_says(f"@{api.username} and here", chat_id=GROUP, user=7)
        await api.until(lambda: api.visible_texts(GROUP)[-1:] == ["You said: and here"])


async def test_the_files_of_a_stranger_are_not_fetched(api: BotApi, bot_on: Any) -> None:
    api.add_private_chat(7)
    async with bot_on(api, access=gate()):
        api.person_sends_document(b"a document of a stranger", chat_id=7)
        await api.until(lambda: bool(api.visible_texts(7)))
        assert api.visible_texts(7) == [in_language("access.refused", "en", name="telegram:7")]
        assert api.calls("getFile") == []
        api.person_sends_document(b"a document of the owner", chat_id=42)
        await api.until(lambda: bool(api.calls("getFile")))
