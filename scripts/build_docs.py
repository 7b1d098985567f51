"""Build the documents as pages, with the reference of the public names beside them: `scripts/docs` calls it.

A link that leads nowhere, or a public name that cannot be described, ends it with an error.
"""

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pdoc
import pdoc.render
from markdown_it import MarkdownIt

import botservice

ROOT = Path(__file__).parents[1]
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.55 system-ui, sans-serif }}
pre, table {{ overflow-x: auto; display: block }} pre, code {{ font-size: .9em }}
td, th {{ padding: .2rem .8rem .2rem 0; vertical-align: top; text-align: left }} img {{ max-width: 100% }}
</style>
<nav><a href="{up}README.html">botservice</a> · <a href="{up}reference/botservice.html">reference</a></nav>
{body}
</html>
"""
_TARGET = re.compile(r'(?:href|src)="([^"]+)"')
_ANCHOR = re.compile(r'\bid="([^"]+)"')
_HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.DOTALL)


def main(site: Path) -> None:
    """Build the site into a folder, and check it."""
    for document in documents():
        write_page(document, site)
    write_reference(site / "reference")
    broken = [*broken_links(site)]
    if broken:
        sys.exit("links that lead nowhere:\n" + "\n".join(broken))
    print(f"{site / 'README.html'}: {len(list(site.rglob('*.html')))} pages, every link leads somewhere")


def documents() -> list[Path]:
    """Return the documents that become pages."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def write_page(document: Path, site: Path) -> None:
    """Write a document as a page; what it links to in the repository is linked to as a page, or copied."""
    place = document.relative_to(ROOT)
    body = MarkdownIt("gfm-like", {"linkify": False}).render(document.read_text())
    body = _HEADING.sub(lambda found: f'<h{found[1]} id="{anchor(found[2])}">{found[2]}</h{found[1]}>', body)
    body = _TARGET.sub(lambda found: found[0].replace(found[1], _as_page(found[1], document, site)), body)
    path = site / place.with_suffix(".html")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAGE.format(title=place.stem, up="../" * (len(place.parts) - 1), body=body))


def anchor(heading: str) -> str:
    """Return what a heading is linked by, as the forges of repositories do it."""
    text = html.unescape(re.sub(r"<[^>]+>", "", heading)).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _as_page(link: str, document: Path, site: Path) -> str:
    parts = urlsplit(link)
    if parts.scheme or not parts.path:
        return link
    target = (document.parent / unquote(parts.path)).resolve()
    if target.suffix == ".md":
        return link.replace(".md", ".html", 1)
    if target.is_file():
        copy = site / target.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(target.read_bytes())
    elif target.is_dir():
        _write_folder(target, site / target.relative_to(ROOT))
        return f"{link.rstrip('/')}/index.html"
    return link


def _write_folder(folder: Path, copy: Path) -> None:
    """Copy the files of a folder, and write a page that lists them."""
    copy.mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        (copy / path.name).write_bytes(path.read_bytes())
    items = "".join(f'<li><a href="{path.name}">{path.name}</a></li>' for path in files)
    depth = "../" * len(folder.relative_to(ROOT).parts)
    (copy / "index.html").write_text(PAGE.format(title=folder.name, up=depth, body=f"<ul>{items}</ul>"))


def write_reference(folder: Path) -> None:
    """Write what the docstrings of the public names say."""
    for name in botservice.__all__:
        setattr(botservice, name, getattr(botservice, name))  # some are imported when they are first asked for
    pdoc.render.configure(docformat="google", show_source=False)
    pdoc.pdoc("botservice", output_directory=folder)


def broken_links(site: Path) -> Iterator[str]:
    """Yield each link of the documents that leads nowhere within the site, with its page.

    Links of the reference to itself are made by pdoc; of an inherited member, it links to where that could be.
    """
    root = site.resolve()
    pages = {page: page.read_text() for page in root.rglob("*.html")}
    anchors = {page: set(_ANCHOR.findall(text)) for page, text in pages.items()}
    for page, text in pages.items():
        for link in _TARGET.findall(text):
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc or (page.parent == root / "reference" and not parts.path):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            is_there = target.is_file() and target.is_relative_to(root)
            if not is_there or (parts.fragment and parts.fragment not in anchors.get(target, set())):
                yield f"{page.relative_to(root)}: {link}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
