"""Commands of one's own that go wrong: each is done once, and the chat goes on."""

import functools
from typing import Any

import pytest
from commands.test_conversations import Commanded, answer_to
from sqlalchemy import insert
from turns.messenger import echo, message, office

from botservice import BotServiceError, Command, CommandAnswer, CommandRequest, StorageUnavailable
from botservice.commands.standard import standard_commands
from botservice.storage.tables.conversations import contexts


class Shop:
    """Counts what its commands have done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def raises(self, request: CommandRequest) -> str:
        self.done.append(request.call.arguments)
        raise RuntimeError(f"no table is free for {request.call.arguments.title()}")

    async def returns_nothing(self, request: CommandRequest) -> None:
        self.done.append(request.call.arguments)

    async def returns_a_number(self, request: CommandRequest) -> int:
        self.done.append(request.call.arguments)
        return 7

    async def has_no_text(self, request: CommandRequest) -> CommandAnswer:
        self.done.append(request.call.arguments)
        nothing: Any = 7
        return CommandAnswer(nothing)

    async def cannot_be_stored(self, request: CommandRequest) -> CommandAnswer:
        self.done.append(request.call.arguments)
        return CommandAnswer("Booked.", apply=lambda _: {}["table"])

    async def is_refused_by_the_database(self, request: CommandRequest) -> CommandAnswer:
        self.done.append(request.call.arguments)
        nameless = insert(contexts).values(key_hash=None, context_keys={}, metadata={})
        return CommandAnswer("Booked.", apply=lambda connection: connection.execute(nameless))

    async def fails_afterwards(self, request: CommandRequest) -> CommandAnswer:
        async def tell() -> None:
            raise RuntimeError("nobody listens")

        self.done.append(request.call.arguments)
        return CommandAnswer("Booked.", after=tell)

    async def finds_no_storage(self, request: CommandRequest) -> str:
        self.done.append(request.call.arguments)
        if len(self.done) == 1:
            raise StorageUnavailable("the database is away")
        return "Booked."

    async def __call__(self, request: CommandRequest) -> str:
        self.done.append(request.call.arguments)
        return "Booked."


def booking(storage, handler):
    return office(
        storage,
        echo,
        messenger=Commanded(),
        commands=standard_commands([Command("book", handler, menu="Book a table")]),
    )


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("raises", "RuntimeError"),
        ("returns_nothing", "TypeError"),
        ("returns_a_number", "TypeError"),
        ("has_no_text", "TypeError"),
        ("cannot_be_stored", "KeyError"),
        ("is_refused_by_the_database", "StorageError"),
    ],
)
async def test_one_that_fails_is_done_once_and_said_to_have_failed(storage, caplog, name, kind):
    shop = Shop()
    async with booking(storage, getattr(shop, name)) as bot:
        said = await answer_to(bot, "/book alice", 1)
        assert said.startswith("Sorry, I couldn’t answer this")
        assert "/retry" not in said, "that asks the question before it again"
        assert await answer_to(bot, "hello", 2) == "re: hello"
        assert shop.done == ["alice"]
    [told] = [record for record in caplog.records if record.message == "command.failed"]
    assert (told.command, told.error) == ("book", kind)
    assert told.exc_info is not None


@pytest.mark.any_database
async def test_one_that_fails_takes_nothing_along_that_has_come_with_it(storage):
    shop = Shop()
    async with booking(storage, shop.raises) as bot:
        together = [message(text, order=order, group="one") for order, text in enumerate(("why?", "/book alice"), 1)]
        await bot.inbox.accept("messenger", together)
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", [])) == 2)
    first, second = bot.messenger.visible["1"]
    assert first.startswith("Sorry, I couldn’t answer this")
    assert second == "re: why?"
    assert shop.done == ["alice"]


@pytest.mark.any_database
async def test_what_is_done_after_its_answer_may_fail(storage, caplog):
    shop = Shop()
    async with booking(storage, shop.fails_afterwards) as bot:
        assert await answer_to(bot, "/book alice", 1) == "Booked."
        assert await answer_to(bot, "hello", 2) == "re: hello"
    assert shop.done == ["alice"]
    assert [record.command for record in caplog.records if record.message == "command.failed"] == ["book"]
    assert bot.messenger.visible["1"] == ["Booked.", "re: hello"]


@pytest.mark.any_database
async def test_one_that_finds_no_storage_is_done_again(storage):
    shop = Shop()
    async with booking(storage, shop.finds_no_storage) as bot:
        assert await answer_to(bot, "/book alice", 1) == "Booked."
    assert shop.done == ["alice", "alice"]


@pytest.mark.parametrize("wrap", [lambda shop: shop, lambda shop: functools.partial(Shop.__call__, shop)])
async def test_a_handler_may_be_an_object_or_a_partial(sqlite_storage, wrap):
    shop = Shop()
    async with booking(sqlite_storage, functools.partial(wrap(shop))) as bot:
        assert await answer_to(bot, "/book alice", 1) == "Booked."
    assert shop.done == ["alice"]


def book(_: CommandRequest) -> str:
    return "Booked."


@pytest.mark.parametrize("handler", [book, functools.partial(book), lambda _: "Booked.", Shop, "book", None])
def test_a_handler_that_cannot_be_awaited_is_refused(handler):
    with pytest.raises(BotServiceError, match=r"the handler of command book is .*async def"):
        Command("book", handler)


@pytest.mark.any_database
async def test_one_knows_what_was_last_said_before_it(storage):
    async def repeats(request: CommandRequest) -> str:
        last = request.context.chat_history.last_user_message
        return "Nothing was said." if last is None else f"You said: {last.text}"

    async with booking(storage, repeats) as bot:
        assert await answer_to(bot, "/book", 1) == "Nothing was said."
        assert await answer_to(bot, "hello", 2) == "re: hello"
        assert await answer_to(bot, "/book", 3) == "You said: hello"
