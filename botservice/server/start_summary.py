"""What the service says at its start: what is on, what is off, and which setting turns it on."""

import os
from typing import Final
from urllib.parse import urlsplit

from botservice.app import Application
from botservice.server.connection_limits import too_few_files
from botservice.storage.database import Storage
from botservice.transport_plugins import load_plugins

_OF_SERVERS: Final = ("OpenAIChatLLM", "FallbackLLM")
# Where each PaaS says that it is one, and that its disk does not outlive a deployment.
_THROWAWAY_DISKS = ("DYNO", "RENDER", "RAILWAY_ENVIRONMENT", "K_SERVICE", "FLY_APP_NAME", "KUBERNETES_SERVICE_HOST")


def describe(application: Application) -> list[str]:
    """Return the lines that say what is on, what is off, and which setting turns it on."""
    settings = application.settings
    on = {transport.name: transport.describe() for transport in application.transports}
    labels = {plugin.name: plugin.label or plugin.name for plugin in load_plugins()}
    of_plugins = {plugin.name: on.get(plugin.name, plugin.off) for plugin in load_plugins()}
    lines = {
        **{labels.get(name, name): said for name, said in {**of_plugins, **on}.items() if said is not None},
        "model": describe_model(application),
        "database": application.storage.name,
    }
    servers = [name for each in application.service.agent.toolsets for name in each.names]
    if servers:
        lines["mcp"] = f"tools of {', '.join(servers)}"
    if application.worker is None:
        lines["worker"] = "in processes of its own: botservice worker"
    short_lived = throwaway_storage(application.storage)
    warnings = [*([] if short_lived is None else [short_lived]), *application.warnings]
    if warnings:
        lines["warning"] = "; ".join(warnings)
    files = too_few_files()
    if files is not None:
        lines["files"] = files
    lines["listening"] = f"{settings.host}:{settings.port}"
    return ["botservice is running. Ctrl+C stops it.", *(f"  {name:<10} {value}" for name, value in lines.items())]


def throwaway_storage(storage: Storage) -> str | None:
    """Return why what is stored will be thrown away, and what to do about it, or None if it is safe."""
    if storage.where.is_memory:
        return "the database is in memory: all is gone when this ends; DATABASE_URL=sqlite:///bot.db keeps it"
    paas = next((name for name in _THROWAWAY_DISKS if os.environ.get(name)), None) if storage.is_sqlite else None
    return None if paas is None else f"{paas} is set: the disk here may not last; set DATABASE_URL to a Postgres"


def describe_model(application: Application) -> str:
    """Return which models answer, and where."""
    llm = application.service.agent.llm
    if llm is None:
        return type(application.service.agent).__name__
    if llm.model == "demo":
        return "a demo script: OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, turns on a real one"
    names = ", then ".join(llm.models)
    address = application.settings.openai_base_url
    if not address or type(llm).__name__ not in _OF_SERVERS:
        return names
    parts = urlsplit(address)
    return f"{names} at {parts._replace(netloc=parts.netloc.rpartition('@')[2]).geturl()}"  # without a password
