"""A Bot API server in local mode: it names files by their place on the disk, and serves none."""

from pathlib import Path
from typing import Any

import pytest
from standins.bot_api import BotApi


async def test_its_files_are_read_where_they_are(api: BotApi, bot_on: Any, tmp_path: Path) -> None:
    api.serve_files_from(tmp_path / api.token)
    async with bot_on(api) as bot:
        api.person_sends_document(b"the code is 4711", chat_id=42)
        await api.message(42)
    assert "the code is 4711" in str(bot.llm.prompts[-1])


@pytest.mark.parametrize("folder", ["elsewhere", "7140000001"])
async def test_a_file_outside_of_the_bot_s_folder_is_not_read(
    api: BotApi, bot_on: Any, tmp_path: Path, folder: str, caplog: pytest.LogCaptureFixture
) -> None:
    api.serve_files_from(tmp_path / folder)
    async with bot_on(api) as bot:
        api.person_sends_document(b"the code is 4711", chat_id=42)
        await api.message(42)
    assert "4711" not in str(bot.llm.prompts[-1])
    assert "this service cannot read the files of its own Bot API server" in str(bot.llm.prompts[-1])
    (record,) = [each for each in caplog.records if each.msg == "telegram.local_file_unreadable"]
    assert "--local" in record.__dict__["advice"]


async def test_a_folder_that_is_not_shared_is_said(
    api: BotApi, bot_on: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / api.token
    api.serve_files_from(folder)
    fetch = api.world.files.fetchable

    def gone(file_id: str) -> Any:
        file = fetch(file_id)
        Path(file.path).unlink()
        return file

    api.world.files.fetchable = gone  # type: ignore[method-assign]  # the stand-in's disk is not shared
    async with bot_on(api) as bot:
        api.person_sends_document(b"the code is 4711", chat_id=42)
        await api.message(42)
    assert "cannot read the files" in str(bot.llm.prompts[-1])
    assert api.token not in caplog.text
