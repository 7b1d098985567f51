"""People who ask for a link to their chat in the browser, and come by it."""

import re

from people.conversing import ALICE, command, open_chat
from sqlalchemy import select

from botservice.commands.catalogue import Catalogue
from botservice.commands.links import UNLINK, web_command
from botservice.storage.tables.conversations import contexts

URL = "https://bot.example"
TOKEN = "a-long-admin-token"
PAGE = {"Accept": "text/html,*/*"}
SITE = {"host": "0.0.0.0", "admin_token": TOKEN, "has_links": True}
COMMANDS = Catalogue([web_command(URL), UNLINK])


async def ask(site, person=ALICE, text="/web", *, name=None):
    """Have a person write /web in their private chat, and return what is answered."""
    chat = await open_chat(site.storage, name or f"{person.platform}-{person.id}", person)
    return (await command(chat, text, person, COMMANDS, now=site.storage.now())).text


async def link(site, person=ALICE):
    """Return the path of a link that a person has asked for."""
    said = await ask(site, person)
    found = re.search(rf"{URL}(/web/link/[A-Za-z0-9_-]{{43}})\s", said)
    assert found, said
    return found[1]


async def come(site, person=ALICE):
    """Return the browser of a person who has used a link of theirs."""
    visitor = await site.visitor(is_open=False)
    answer = await visitor.client.post(await link(site, person))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return visitor


async def chats(site):
    """Return the sessions of all conversations in browsers."""
    keys = await site.storage.read(
        lambda connection: connection.execute(select(contexts.c.context_keys)).scalars().all()
    )
    return sorted(each["session_id"] for each in keys if each["transport"] == "web")


async def status(visitor, path="/"):
    return (await visitor.client.get(path, headers=PAGE)).status_code
