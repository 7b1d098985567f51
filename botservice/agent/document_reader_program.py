"""The text of PDFs, office documents and web pages: a program that ends when it takes too much or nobody waits for it.

It imports nothing of the service, so that it starts quickly; `botservice.agent.document_reader` starts it. What it is
given comes by stdin: one line with the limits, then the file. What it finds goes to stdout: a sign and the text.
"""

import contextlib
import io
import json
import os
import re
import signal
import sys
import threading
import time
from functools import partial
from typing import Any, Final

READ: Final = b"+"
REFUSED: Final = b"-"

_WATCH_SECONDS: Final = 0.05
_LONGEST_LINK: Final = 500
_LONGEST_TITLE: Final = 300
_SHORT_TEXT: Final = 200
_FRONT_MATTER: Final = re.compile(r"\A---\n\n?(?:#+ )?\w+: [^\n]*\n+")


def read_pdf(data: bytes, *, max_characters: int, max_pages: int, is_paged: bool = False) -> str:
    """Return the text on a PDF's pages, up to max_characters.

    Args:
        is_paged: Whether a form feed stands after each page, also after an empty one.

    Raises:
        ValueError: it is locked; pypdf raises whatever a file that is no PDF leads to.
    """
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise ValueError("the PDF is locked with a password")
    pages: list[str] = []
    for _, page in zip(range(max_pages), reader.pages, strict=False):
        pages.append(page.extract_text().strip())
        if sum(map(len, pages)) > max_characters:
            break
    if is_paged:
        return "".join(f"{page}\f" for page in pages)[:max_characters]
    return "\n\n".join(page for page in pages if page)[:max_characters]


def read_office(data: bytes, *, mime_type: str, max_characters: int) -> str:
    """Return an office document as Markdown: headings, paragraphs and tables. Macros and entities are not run.

    Raises:
        ImportError: kreuzberg is not installed.
        kreuzberg.KreuzbergError: it is damaged, or larger than it may become.
    """
    from kreuzberg import ConcurrencyConfig, ExtractionConfig, extract_bytes_sync

    threads = ConcurrencyConfig(max_threads=1)
    config = ExtractionConfig(output_format="markdown", use_cache=False, concurrency=threads)
    text = extract_bytes_sync(data, mime_type, config).content
    return _FRONT_MATTER.sub("", text, count=1)[:max_characters]


def read_html(data: bytes, *, max_characters: int) -> str:
    """Return the title of a web page and the text that it is about, with the addresses of its links.

    Args:
        data: The page's address in the first line, then the page, in UTF-8.

    Raises:
        ValueError: it cannot be parsed.
    """
    from urllib.parse import urljoin

    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    address, _, page = data.partition(b"\n")
    tree = HTMLTree.parse(page.decode("utf-8", "replace"))
    for link in tree.document.get_elements_by_tag_name("a") if tree.document is not None else ():
        try:
            target = urljoin(address.decode(), (link.getattr("href") or "").strip())
        except ValueError:
            target = ""
        is_shown = target.startswith(("http://", "https://")) and len(target) <= _LONGEST_LINK
        link.setattr("href", target if is_shown else "")
    extract = partial(extract_plain_text, tree, preserve_formatting=True, alt_texts=False, links=True)
    text = extract(main_content=True)
    if len(text) < _SHORT_TEXT:  # a page that is no article
        text = max(text, extract(main_content=False), key=len)
    title = " ".join((tree.title or "").split())[:_LONGEST_TITLE]
    return f"{title}\n{text.strip()}"[:max_characters]


def main() -> None:
    """Read the limits and a file, write its text, and end."""
    limits = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read(limits["size_bytes"])
    _watch(limits["memory_bytes"])
    kind, most = limits["kind"], limits["max_characters"]
    _limit(limits["memory_bytes"], limits["cpu_seconds"], has_threads=kind == "office")
    try:
        if kind == "html":
            text = read_html(data, max_characters=most)
        elif kind == "office":
            text = read_office(data, mime_type=limits["mime_type"], max_characters=most)
        else:
            _limit_streams(limits["stream_bytes"])
            paged = limits["is_paged"]
            text = read_pdf(data, max_characters=most, max_pages=limits["max_pages"], is_paged=paged)
        found = READ + text.encode("utf-8", "replace")
    except MemoryError:
        os._exit(3)
    except Exception as error:  # noqa: BLE001 - a border: PDFs are what anybody made
        found = REFUSED + type(error).__name__.encode()
    sys.stdout.buffer.write(found)
    sys.stdout.buffer.flush()
    os._exit(0)


def _watch(memory_bytes: int) -> None:
    """End the process when its parent is gone, or when it holds too much and the system sets no limit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the service, which ends this one itself
    threading.Thread(target=_watch_asker, daemon=True).start()
    threading.Thread(target=_watch_memory, args=[memory_bytes], daemon=True).start()


def _watch_asker() -> None:
    while os.read(0, 4096):
        pass
    os._exit(2)


def _watch_memory(memory_bytes: int) -> None:
    with contextlib.suppress(ImportError, OSError):
        while _resident_bytes() < memory_bytes:
            time.sleep(_WATCH_SECONDS)
        os._exit(3)


def _resident_bytes() -> int:
    """Return how much memory the process holds, or has held at most, in bytes."""
    if sys.platform.startswith("linux"):  # where the most held counts from before this program began
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - without pathlib it starts sooner
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _limit(memory_bytes: int, cpu_seconds: int, *, has_threads: bool) -> None:
    """Have the system end the process at its limits, and let everything else on the machine go first.

    Args:
        has_threads: Whether the reader needs threads, which the system counts as processes.
    """
    with contextlib.suppress(ImportError, OSError):
        import resource

        os.nice(10)
        limits = {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": 0,
            **({} if has_threads else {"RLIMIT_NPROC": 0}),
            "RLIMIT_CPU": cpu_seconds,
            "RLIMIT_DATA": memory_bytes,
        }
        for name, value in limits.items():
            with contextlib.suppress(AttributeError, ValueError, OSError):
                resource.setrlimit(getattr(resource, name), (value, value))


def _limit_streams(stream_bytes: int) -> None:
    """Bound what compressed parts of a file may become, one by one and together, and run no other program."""
    from dataclasses import fields

    from pypdf import Configuration, overwrite_configuration

    names = [each.name for each in fields(Configuration) if each.name.endswith("_maximum_output_length")]
    bounds: dict[str, Any] = {
        **dict.fromkeys(names, stream_bytes),
        "stream_decoding_work_maximum_length": 4 * stream_bytes,
        "jbig2dec_binary": None,
    }
    overwrite_configuration(**bounds)


if __name__ == "__main__":
    main()
