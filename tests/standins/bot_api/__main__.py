# ruff: noqa: T201 - it prints for whoever tries it by hand
"""A Bot API server to talk to by hand: `python tests/standins/bot_api --port 8081`; every line typed is a message."""

import argparse
import sys
import threading
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from standins.bot_api import TOKEN, BotApi
from standins.bot_api.journal import DraftShown, MessageEdited, MessageShown
from standins.serving import Entry


def show(api: BotApi) -> None:
    """Print what the bot makes visible."""
    since = 0
    while True:
        entry = api.journal.wait_for(Entry, since=since, timeout=threading.TIMEOUT_MAX)
        since = entry.seq
        if isinstance(entry, MessageShown | MessageEdited) and entry.from_bot:
            print(f"{entry.chat_id} bot: {entry.text}", flush=True)
        elif isinstance(entry, DraftShown):
            print(f"{entry.chat_id} … {entry.text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument(
        "--chat", type=int, default=42, help="who writes; begin a line with a number to be another, or a group"
    )
    options = parser.parse_args()
    with BotApi.running(port=options.port, token=options.token) as api:
        print(f"TELEGRAM_API_URL={api.url} TELEGRAM_BOT_TOKEN={api.token}", flush=True)
        threading.Thread(target=show, args=(api,), daemon=True).start()
        for line in sys.stdin:
            first, _, rest = line.strip().partition(" ")
            if first.removeprefix("-").isdigit() and rest:
                api.person_says(rest, chat_id=int(first))
            elif line.strip():
                api.person_says(line.strip(), chat_id=options.chat)
        threading.Event().wait()  # no console, or its end: serve on until Ctrl+C


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
