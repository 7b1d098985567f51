"""What the process takes by itself: memory, starts, and what a message takes of the disk."""

import asyncio
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from botservice import AgentContext, ScriptedChatLLM, Storage
from costs.chats import make_service, new_chat, question, size

TICKS = os.sysconf("SC_CLK_TCK")
_TURNS_OF_A_CHAT = 300
_CHATS = 400
_START_SECONDS = 60.0
_MODEL = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "none"}


def show_process():
    """Print the table."""
    print("| figure | measured |\n|---|---|")
    spawning = multiprocessing.get_context("spawn")
    with spawning.Pool(1, maxtasksperchild=1) as pool:
        print(f"| bytes a message, {_TURNS_OF_A_CHAT} turns | {pool.apply(bytes_a_message):.0f} |", flush=True)
        print(f"| memory of a chat, {_CHATS} chats | {pool.apply(memory_of_a_chat) / 1024:.1f} kB |", flush=True)
    for name, model in (("a model", _MODEL), ("the demo script", {})):
        cpu, memory = starts(model)
        print(f"| `botservice serve` with {name}, until /readyz | {cpu:.2f} s of CPU |")
        print(f"| memory then | {memory / 2**20:.0f} MiB |", flush=True)
    print(f"| `botservice --help` | {help_cpu():.2f} s of CPU |")


def bytes_a_message():
    """Return what the turns of one chat add to an empty database, by message: two for each turn."""

    async def run(url):
        async with Storage.open(url, migrate=True) as storage:
            service = make_service(storage, ScriptedChatLLM(lambda _: "some words of an answer, " * 4))
            context = await new_chat(storage, 0)
            before = await size(storage)
            for number in range(_TURNS_OF_A_CHAT):
                await service.prompt(context, question(number))
            return (await size(storage) - before) / (2 * _TURNS_OF_A_CHAT)

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(f"sqlite:///{folder}/bytes.db"))


def memory_of_a_chat():
    """Return the bytes of memory that each further chat takes in which one message was answered."""

    async def ask(service, storage, numbers):
        for number in numbers:
            context = await AgentContext.get_or_create(storage, {"id": str(number)})
            await service.prompt(context, question(number))

    async def run(url):
        async with Storage.open(url, migrate=True) as storage:
            model = ScriptedChatLLM(lambda _: "some words of an answer")
            service = make_service(storage, model)
            await ask(service, storage, range(100))  # what every process needs once
            model.prompts.clear()
            model.tools.clear()
            before = resident(os.getpid())
            await ask(service, storage, range(100, 100 + _CHATS))
            model.prompts.clear()
            model.tools.clear()
            return (resident(os.getpid()) - before) / _CHATS

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(f"sqlite:///{folder}/memory.db"))


def resident(pid):
    """Return the bytes of memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def starts(model):
    """Return the seconds of CPU of a server until it is ready, and its memory then."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="botservice-cost-")
    wanted = {"DATABASE_URL": f"sqlite:///{folder}/bot.db", "HOST": "127.0.0.1", "PORT": str(port)}
    command = [sys.executable, "-m", "botservice", "serve"]
    environment = {name: value for name, value in os.environ.items() if name not in _MODEL} | wanted | model
    subprocess.run(
        [sys.executable, "-m", "botservice", "migrate"],
        env=environment,
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + _START_SECONDS
        while not is_ready(f"http://127.0.0.1:{port}/readyz"):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("the server did not become ready")
            time.sleep(0.05)
        times = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(times[11]) + int(times[12])) / TICKS, resident(process.pid)
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def is_ready(url):
    """Return whether a server says that it is ready."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def help_cpu():
    """Return the seconds of CPU that the command's help takes, the least of five."""
    spent = []
    for _ in range(5):
        before = os.times()
        subprocess.run([sys.executable, "-m", "botservice", "--help"], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        spent.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(spent)
