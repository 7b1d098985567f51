"""What a `botservice` that answers has loaded, for processes forked from here: loading takes most of a start."""

import gc
import sys
from importlib import import_module
from pathlib import Path

from botservice.llm.proxies_and_tls import tls_context
from botservice.texts import LANGUAGES, number_in_language

_AT_THE_START = (
    *("botservice.cli.main", "botservice.server.serving", "botservice.app", "botservice.storage.schema"),
    *(
        "transports.web.plugin",
        "botservice.transport_plugins",
        "transports.telegram.app",
        "transports.slack.app",
        "transports.web.app",
    ),
    *("botservice.cli.serve_processes", "botservice.cli.serve_processes", "typer._adapters", "typer._click.decorators"),
    *("botservice.llm.openai.llm", "uvicorn.protocols.http.h11_impl", "tests.turns.killable"),
)
_WHEN_NEEDED = (
    *("openai.resources.responses", "openai.resources.chat", "httpcore2", "truststore", "anyio._backends._asyncio"),
    *("requests", "tiktoken.load", "tiktoken_ext.openai_public", "alembic.command", "alembic.context"),
    *("botservice.llm.openai.aiohttp_transport", "uvicorn.lifespan.off", "encodings.utf_16_le"),
    *("uvicorn.lifespan.on", "encodings.idna", "sqlalchemy.dialects.postgresql.psycopg", "psycopg"),
)

sys.path.append(str(Path(__file__).parents[1]))
for _name in (*_AT_THE_START, *_WHEN_NEEDED):
    import_module(_name)
for _language in LANGUAGES:
    number_in_language(1, _language)
tls_context()  # the authorities that are trusted, which take as long to read as a fifth of a start
# What is here stays: a collection in a process that was forked would look through it, and copy it by that.
gc.collect()
gc.freeze()
