"""`botservice send`: the bot's own words in a chat, from a script."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from botservice import AgentContext, Storage

Run = Callable[..., tuple[int, str, str]]
GROUP = {"transport": "telegram", "chat_id": "-100123"}


def sent_to(keys: dict[str, str]) -> list[tuple[int | None, str, list[str | None]]]:
    async def read() -> list[tuple[int | None, str, list[str | None]]]:
        async with Storage.open(os.environ["DATABASE_URL"]) as storage:
            context = await AgentContext.get_or_create(storage, keys)
            messages = await context.chat_history.messages()
            return [(each.id, each.text, [file.name for file in each.attachments]) for each in messages]

    return asyncio.run(read())


def test_a_message_is_stored_and_its_id_printed(run: Run) -> None:
    code, said, wrong = run("send", "telegram:-100123", "The build is red.")
    assert (code, wrong) == (0, "")
    assert sent_to(GROUP) == [(int(said), "The build is red.", [])]


def test_the_same_key_again_prints_the_same_id(run: Run) -> None:
    first = run("send", "telegram:-100123", "one", "--key", "build-7")
    assert run("send", "telegram:-100123", "other", "--key", "build-7") == first
    assert [text for _, text, _ in sent_to(GROUP)] == ["one"]


def test_files_go_along(run: Run, tmp_path: Path) -> None:
    for name in ("log.txt", "figures.csv"):
        (tmp_path / name).write_text("a,b")
    code, _, _ = run("send", "telegram:-100123", "", "--file", "log.txt", "--file", "figures.csv")
    assert code == 0
    assert [names for _, _, names in sent_to(GROUP)] == [["log.txt", "figures.csv"]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere", "hi"], "'nowhere': no chat is named so: write telegram:CHAT_ID"),
        (["telegram:42", "hi"], "telegram:42 never wrote to this bot, which may not begin there"),
        (["telegram:-100123", " "], "what is sent"),
        (["telegram:-100123", "hi", "--file", "nothing.txt"], "cannot read nothing.txt: No such file"),
        (["telegram:-100123", "hi", "--key", ""], "key="),
        (["99", "hi"], "nothing is sent: there is no context 99"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(run: Run, arguments: list[str], says: str) -> None:
    code, said, wrong = run("send", *arguments)
    assert (code, said) == (1, "")
    assert wrong.startswith(f"botservice: {says}")
    assert wrong.count("\n") == 1


def test_where_only_some_are_let_in_the_others_hear_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCESS", "allow")
    monkeypatch.setenv("ALLOWED", "telegram:-1")
    assert run("send", "telegram:-1", "hi")[0] == 0
    code, _, wrong = run("send", "telegram:-2", "hi")
    assert (code, "telegram:-2 is blocked or has no access: `botservice access approve telegram:-2`" in wrong) == (
        1,
        True,
    )
