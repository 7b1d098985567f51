"""A service that is served lets in, and uses, what the settings say, unless its program says otherwise."""

from typing import Any

import pytest

from botservice import Author, InboundMessage, SettingsError
from botservice.app import running
from botservice.config.settings import Settings
from botservice.core.policies import AccessMode, Scope, parse_limits
from botservice.factories import build_service
from botservice.people.access import Access
from botservice.people.access_values import AccessRole
from botservice.people.budgets import Budgets


def settings(**values: Any) -> Settings:
    chosen = {"_env_file": None, "openai_api_key": None, "openai_base_url": None, "database_url": "sqlite://", **values}
    return Settings(**chosen)


async def test_the_settings_count_where_the_program_has_no_word_of_its_own() -> None:
    chosen = settings(access="allow", owners="telegram:42", budget_person="200k tokens/day")
    service = build_service(chosen)
    async with running(chosen, service, []) as application:
        assert service.options.access.mode is AccessMode.ALLOW
        assert service.options.budgets.is_for(Scope.PERSON)
        ruling = await service.options.access.judge(
            application.storage,
            InboundMessage("hello", Author("telegram", "42")),
            {"transport": "telegram", "chat_id": "42"},
            service.options.clock(),
        )
        assert ruling.role is AccessRole.OWNER


async def test_what_the_program_says_counts_first() -> None:
    chosen = settings(access="allow", budget_person="200k tokens/day")
    service = build_service(chosen)
    service.access = Access(AccessMode.OPEN)
    service.budgets = Budgets({Scope.CHAT: parse_limits("10k tokens/day")})
    async with running(chosen, service, []):
        assert service.options.access is service.access
        assert service.options.budgets is service.budgets


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"budget_service": "5 money/day", "openai_base_url": "http://127.0.0.1:1/v1", "openai_model": "m"}, "PRICES"),
        ({"budget_service": "5000 tokens/day", "max_answer_tokens": 5000}, "MAX_ANSWER_TOKENS"),
    ],
)
async def test_a_budget_that_cannot_be_kept_does_not_start(wrong: dict[str, Any], says: str) -> None:
    chosen = settings(**wrong)
    with pytest.raises(SettingsError, match=says):
        async with running(chosen, build_service(chosen), []):
            pass


@pytest.mark.parametrize(("platform", "role"), [("terminal", AccessRole.OWNER), ("web", AccessRole.OWNER), ("x", None)])
async def test_whoever_sits_at_the_terminal_or_is_let_into_the_pages_is_an_owner(
    platform: str, role: AccessRole | None
) -> None:
    chosen = settings()
    async with running(chosen, build_service(chosen), []) as application:
        ruling = await Access(AccessMode.ALLOW).judge(
            application.storage,
            InboundMessage("hello", Author(platform, "s")),
            {"transport": platform, "session_id": "s"},
            application.service.options.clock(),
        )
        assert ruling.role is role
        assert ruling.is_admitted is (role is not None)
