"""Whether a process stays as it is: memory, files, threads and the database, while people keep writing.

    python benchmarks/soak.py [--minutes 30] [--per-second 5] [--chats 50] [--url postgresql://…]

A real `botservice serve` is talked to through Telegram's webhook; what is sampled is that process alone.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import psutil
from sqlalchemy import create_engine, make_url, text

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from crash.served import ServedBot
from crash.test_kills import free_port
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply

SAMPLES = 15


def main():
    options = read_options()
    with tempfile.TemporaryDirectory() as folder, OpenAIApi.running(reply) as llm, BotApi.running() as api:
        url = options.url or f"sqlite:///{folder}/soak.db"
        port = free_port()
        settings = {
            "DATABASE_URL": url,
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "PORT": str(port),
            "PUBLIC_URL": f"http://127.0.0.1:{port}",
        }
        with ServedBot(Path(folder), **settings) as bot:
            bot.start()
            soak(options, api, url, psutil.Process(bot.pid))


def reply(body):
    return Reply(text=f"Answer to {str(body['messages'][-1]['content'])[-200:]}", delay=0.05)


def soak(options, api, url, process):
    print(f"{options.per_second}/s in {options.chats} chats for {options.minutes:g} minutes, {url.partition(':')[0]}")
    print("minute   messages   memory MiB   files   threads   database MiB   new bytes a message   CPU % of a core")
    seed, said = random.Random(1), 0
    started = sampled = time.monotonic()
    sizes = [(0, database_bytes(url))]
    cpu, end = cpu_seconds(process), started + options.minutes * 60
    while time.monotonic() < end:
        api.person_says(f"message {said} {seed.randbytes(40).hex()}", chat_id=1000 + seed.randrange(options.chats))
        said += 1
        time.sleep(max(0.0, started + said / options.per_second - time.monotonic()))
        if time.monotonic() - sampled > options.minutes * 60 / SAMPLES:
            now, used = time.monotonic(), cpu_seconds(process)
            size = database_bytes(url)
            grown = (size - sizes[-1][1]) / (said - sizes[-1][0])
            report(process, said, size, grown, (now - started) / 60, 100 * (used - cpu) / (now - sampled))
            sizes.append((said, size))
            sampled, cpu = now, used
    chats = range(1000, 1000 + options.chats)
    api.wait_until(
        lambda: sum(len(api.visible_texts(chat)) for chat in chats) >= said, timeout=120, what="all answered"
    )
    print(f"all {said} answered")


def report(process, said, size, grown, minute, percent):
    print(
        f"{minute:6.1f} {said:10} {process.memory_info().rss / 2**20:12.1f} {process.num_fds():7}"
        f" {process.num_threads():9} {size / 2**20:14.2f} {grown:21.0f} {percent:17.1f}",
        flush=True,
    )


def cpu_seconds(process):
    times = process.cpu_times()
    return times.user + times.system


def database_bytes(url):
    path = make_url(url).database
    if url.startswith("sqlite"):
        return Path(path).stat().st_size  # without its log, which is emptied into it again and again
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.connect() as connection:
        return connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--per-second", type=float, default=5)
    parser.add_argument("--chats", type=int, default=50)
    parser.add_argument("--url", help="a Postgres database with tables; by default a new SQLite file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
