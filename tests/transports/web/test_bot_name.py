"""A bot's name stands on its pages, in its manifest and in the standard prompt."""

import json

import pytest

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM
from botservice.config.settings import Settings
from botservice.factories import build_service, govern
from botservice.transport_plugins import build_transports
from transports.web.app import WebTransport
from transports.web.pages import PageRenderer, read_assets

LLM = ScriptedChatLLM(["hi"])


def service(name: str | None = None, **options: str) -> AgentService:
    return AgentService(FunctionsBasedAgent(llm=LLM, **options), name=name)


def page(name: str) -> str:
    pages = PageRenderer(read_assets(), name)
    values = {"session": "s", "conversation": "first", "account": None, "max_text": 1, "max_files": 1}
    more = {"max_files_bytes": 1, "can_log_out": False, "starters": [], "starters_language": "en"}
    return bytes(pages.show("chat.html", **values, **more).body).decode()


def test_the_page_has_it_in_header_tab_and_label_with_an_avatar() -> None:
    html = page("Ada & <Co>")
    assert "<title>Ada &amp; &lt;Co&gt;</title>" in html
    assert 'data-service="Ada &amp; &lt;Co&gt;"' in html
    assert '<h1 dir="auto">Ada &amp; &lt;Co&gt;</h1>' in html
    assert html.count('<span class="avatar" aria-hidden="true">A</span>') == 2
    assert "avatar" not in page("botservice")


@pytest.mark.parametrize("name", ["Ada", 'A "quoted" \\ name', "Ада & 猫", "<script>"])
async def test_the_manifest_has_it(name: str) -> None:
    manifest = json.loads(bytes(PageRenderer(read_assets(), name).show("app.webmanifest").body))
    assert (manifest["name"], manifest["short_name"]) == (name, name)


@pytest.mark.parametrize(
    ("own", "setting", "shown"), [("Ada", "Ben", "Ada"), (None, "Ben", "Ben"), (None, None, "botservice")]
)
def test_the_service_s_name_counts_before_the_setting(own: str | None, setting: str | None, shown: str) -> None:
    settings = Settings(_env_file=None, bot_name=setting)
    (web,) = [each for each in build_transports(settings, service(own)) if isinstance(each, WebTransport)]
    manifest = json.loads(bytes(web._pages.show("app.webmanifest").body))
    assert manifest["name"] == shown


def test_the_standard_prompt_has_it_and_one_s_own_stays() -> None:
    assert service("Ada").agent.prompt.startswith("You are Ada, a helpful assistant in a chat. Answer briefly")
    assert service("Ada", prompt="Be brief.").agent.prompt == "Be brief."
    named = build_service(Settings(_env_file=None, bot_name="Ben"))
    assert named.agent.prompt.startswith("You are Ben, a helpful")
    later = service()
    govern(Settings(_env_file=None, bot_name="Ben"), later)
    assert later.agent.prompt.startswith("You are Ben, a helpful")


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "two\nlines", "a\u200bb"])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a bot's name must be one line"):
        service(name)
