"""Build the documents as a site with search, the reference of the public names, and llms.txt: `scripts/docs` calls it.

Each minor version has a folder of its own. Folders of other versions stay, and the pages offer all of them.
A link that leads nowhere, or a public name that cannot be described, ends it with an error.
"""

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

import botservice

sys.path.insert(0, str(Path(__file__).parent))  # `python -P` leaves it out

from api_reference import write_api_reference

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "docs" / "README.md"
_CONFIGURATION = """
[project]
site_name = "botservice {version}"
{source}extra_css = ["site.css"]
docs_dir = "pages"
site_dir = "site"
use_directory_urls = false
nav = [{nav}]
[project.extra.version]
provider = "mike"
[project.theme]
font = false
language = "en"
features = ["content.code.copy", "navigation.indexes", "navigation.top", "search.highlight", "toc.follow"]
[project.theme.icon]
logo = "lucide/message-circle"
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"
[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.pymdownx.superfences]
"""
_PARTS = (("ordered_list_open", "<ol"), ("list_item_open", "<li"), ("fence", "<pre"), ("table_open", "<table"))
_STYLE = """:root, [data-md-color-scheme] { --md-primary-fg-color: #2f6f5e; --md-accent-fg-color: #2f6f5e; }
[data-md-color-scheme="slate"] { --md-typeset-a-color: #7fd1b9; --md-accent-fg-color: #7fd1b9; }
.md-typeset table:not([class]) td code, .md-typeset table:not([class]) th code { white-space: nowrap; }
.md-typeset table:not([class]) { display: block; overflow-x: auto; }
"""
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_MARKDOWN_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
_ENTRY = re.compile(r"\[([^\]]+)\]\(([^)\s#]+\.md)(?:#[^)\s]*)?\)(?:: ([^·\n]*))?")
_MARK = re.compile(r"( *)(?:[-*+]|\d+[.)]) +")
_VERSION = re.compile(r"\d+\.\d+")
_TARGET = re.compile(r'(?:href|src)="([^"]+)"')
_ANCHOR = re.compile(r'\bid="([^"]+)"')


def main(folder: Path) -> None:
    """Build the site of this version into its folder in another one, and check it."""
    site = folder / ".".join(botservice.__version__.split(".")[:2])
    shutil.rmtree(site, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        workshop = Path(temporary)
        for document in documents():
            stage(document, workshop / "pages")
        for name in botservice.__all__:
            setattr(botservice, name, getattr(botservice, name))  # some are imported when they are first asked for
        reference = write_api_reference(workshop / "pages" / "reference")
        (workshop / "pages" / "site.css").write_text(_STYLE)
        titles = {title: f"reference/{page.name}" for title, page in reference.items()}
        nav, source = ", ".join(navigation(titles)), _source()
        configuration = _CONFIGURATION.format(nav=nav, version=botservice.__version__, source=source)
        (workshop / "zensical.toml").write_text(configuration)
        zensical = Path(sys.executable).parent / "zensical"
        subprocess.run([zensical, "build", "--strict"], cwd=workshop, check=True)
        shutil.copytree(workshop / "site", site)
    write_for_models(site)
    write_versions(folder)
    broken = [*broken_links(site), *misread_pages(site)]
    if broken:
        sys.exit("pages that are not as they should be:\n" + "\n".join(broken))
    print(f"{site / 'index.html'}: {len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    print(f"Search needs a server: python3 -m http.server --directory {folder} --bind 127.0.0.1 8001")


def write_versions(folder: Path) -> None:
    """Write the list of versions that the pages offer, and a first page that leads to the newest."""
    numbers = [[*map(int, each.name.split("."))] for each in folder.iterdir() if _VERSION.fullmatch(each.name)]
    names = [".".join(map(str, each)) for each in sorted(numbers, reverse=True)]
    versions = [{"version": name, "title": name, "aliases": ["latest"] if name == names[0] else []} for name in names]
    (folder / "versions.json").write_text(json.dumps(versions))
    (folder / "index.html").write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={names[0]}/">')


def documents() -> list[Path]:
    """Return the documents that become pages."""
    found = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if path.name != "PACKAGE.md"]  # what package indexes show: the README in short


def page_of(document: Path) -> Path:
    """Return where the page of a document stands in the site."""
    place = document.relative_to(ROOT).with_suffix(".html")
    return place.with_name("index.html") if place.stem == "README" else place


def stage(document: Path, pages: Path) -> None:
    """Copy a document, and what it links to in the repository besides other documents."""
    path = pages / document.relative_to(ROOT)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(staged_text(document.read_text(), document, pages))


def staged_text(text: str, document: Path, pages: Path) -> str:
    """Return the text of a document with its links to folders leading to pages; what it links to is copied."""
    parts = _FENCE.split(text)
    parts[::2] = (_MARKDOWN_LINK.sub(lambda found: _staged(found, document, pages), part) for part in parts[::2])
    return _with_deeper_lists("".join(parts))


def _with_deeper_lists(text: str) -> str:
    """Indent what stands within items of lists by four columns a level, as Python-Markdown wants it.

    CommonMark, by which everybody else reads these documents, takes as many columns as the item's mark has.
    """
    lines = text.split("\n")
    deeper, begins = [0] * len(lines), set[int]()
    for token in MarkdownIt().parse(text):
        if token.type == "list_item_open" and token.map is not None:
            first, end = token.map
            mark = _MARK.match(lines[first])
            width = 2 if mark is None else len(mark[0]) - len(mark[1])
            for number in range(first + 1, end):
                deeper[number] += max(0, 4 - width)
            if first > 0 and deeper[first - 1] > deeper[first]:  # behind an item with blocks, it takes an empty line
                begins.add(first)
    return "\n".join(
        ("\n" if number in begins else "") + (" " * deeper[number] + line if line.strip() else line)
        for number, line in enumerate(lines)
    )


def _staged(found: re.Match[str], document: Path, pages: Path) -> str:
    link = found[1]
    target = (document.parent / unquote(link)).resolve()
    if urlsplit(link).scheme or target.suffix == ".md" or not target.exists():
        return found[0]
    copy = pages / target.relative_to(ROOT)
    if target.is_dir():
        _stage_folder(target, copy)
        return f"]({link.rstrip('/')}/index.md)"
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(target, copy)
    return found[0]


def _stage_folder(folder: Path, copy: Path) -> None:
    """Copy the files of a folder, with a page that lists them."""
    if (folder / "README.md").exists():
        (copy / "index.md").parent.mkdir(parents=True, exist_ok=True)
        return
    copy.mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        shutil.copyfile(path, copy / path.name)
    items = "".join(f"- [{path.name}]({path.name})\n" for path in files)
    (copy / "index.md").write_text(f"# {folder.relative_to(ROOT)}\n\n{items}")


def entries() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the kinds of documents, each with its pages: what they are called, their paths, what they are about."""
    for section in INDEX.read_text().split("\n## ")[1:]:
        kind = section.partition("\n")[0].partition(":")[0]
        found = _ENTRY.findall(section)
        yield kind, [(name, _path(link), about.strip()) for name, link, about in found]


def _path(link: str) -> str:
    return str((INDEX.parent / link).resolve().relative_to(ROOT))


def navigation(reference: Mapping[str, str]) -> Iterator[str]:
    """Yield the entries of the site's navigation, as TOML, in the order of docs/README.md.

    Args:
        reference: The pages of the public names, by their titles.
    """
    yield _entry("Start", json.dumps("README.md"))
    for kind, pages in entries():
        listed = [_entry(name, json.dumps(path)) for name, path, _ in pages]
        if kind == "Look up":
            topics = ", ".join(_entry(title, json.dumps(page)) for title, page in reference.items())
            listed.append(_entry("Python API", f"[{topics}]"))
        yield _entry(kind, f"[{', '.join(listed)}]")


def _entry(name: str, value: str) -> str:
    return f"{{{json.dumps(name, ensure_ascii=False)} = {value}}}"


def write_for_models(site: Path) -> None:
    """Write llms.txt, a list of all documents as Markdown, and llms-full.txt, which is all of them in one."""
    listed = []
    for document in documents():
        copy = site / document.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(document, copy)
    for kind, pages in entries():
        lines = [f"- [{name}]({path})" + (f": {about}" if about else "") for name, path, about in pages]
        listed.append(f"## {kind}\n\n" + "\n".join(lines) + "\n")
    head = f"# botservice\n\n> {botservice.__doc__}\n\nVersion {botservice.__version__}. [README](README.md)\n"
    (site / "llms.txt").write_text("\n".join([head, *listed]))
    texts = [f"<!-- {path.relative_to(ROOT)} -->\n\n{path.read_text()}" for path in documents()]
    (site / "llms-full.txt").write_text("\n".join(texts))


def _source() -> str:
    """Return the setting that links to where this checkout came from, if that is an address on the web."""
    asked = ["git", "config", "--get", "remote.origin.url"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return f"repo_url = {json.dumps(found)}\n" if urlsplit(found).scheme == "https" else ""


def misread_pages(site: Path) -> Iterator[str]:
    """Yield each document whose page has other lists, tables or blocks of code, or shows the source of a diagram."""
    for document in documents():
        page = site / page_of(document)
        shown = page.read_text().partition("<article")[2].partition("</article>")[0]
        tokens = MarkdownIt("commonmark").enable("table").parse(document.read_text())
        for kind, tag in _PARTS:
            wanted, found = sum(token.type == kind for token in tokens), shown.count(tag)
            if wanted != found:
                yield f"{page.relative_to(site)}: {found} times {tag}> where the document has {wanted}"
        if any(token.type == "fence" and token.info == "mermaid" for token in tokens):
            yield f"{page.relative_to(site)}: a diagram shows as its source; draw it as a picture, or as text"


def broken_links(site: Path) -> Iterator[str]:
    """Yield each link of the documents that leads nowhere within the site, with its page."""
    root = site.resolve()
    pages = {page: page.read_text() for page in root.rglob("*.html")}
    anchors = {page: set(_ANCHOR.findall(text)) for page, text in pages.items()}
    for page, text in pages.items():
        for link in _TARGET.findall(text):
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            is_there = target.is_file() and target.is_relative_to(root)
            if not is_there or (parts.fragment and parts.fragment not in anchors.get(target, set())):
                yield f"{page.relative_to(root)}: {link}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
