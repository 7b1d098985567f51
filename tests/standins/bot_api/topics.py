"""Topics that the bot makes (Bot API 9.4 for private chats), where it may."""

from typing import Any

from standins.bot_api.calls import Call, bad_request
from standins.bot_api.methods import Bench, method


@method("createForumTopic")
def create_forum_topic(bench: Bench, call: Call) -> dict[str, Any]:
    chat = bench.world.reachable(call)
    if chat.is_private and not bench.abilities.get("has_topics_enabled"):
        raise bad_request("the chat is not a forum")
    if not chat.is_private and (not chat.is_forum or chat.bot_status != "administrator"):
        raise bad_request("not enough rights to create a topic" if chat.is_forum else "the chat is not a forum")
    name = call.text("name")
    if not 1 <= len(name) <= 128:
        raise bad_request("TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_TOO_LONG")
    content = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
    made = bench.world.show(chat, bench.world.bot, content, call_seq=call.seq)
    chat.topics[made.message_id] = name
    made.wire |= {"message_thread_id": made.message_id, "is_topic_message": True}
    return {"message_thread_id": made.message_id, "name": name, "icon_color": 7322096}
