"""Check the English of the documents: private words, inverted sentences, long sentences, long pages.

Usage: scripts/prose.py [PAGE ...]; without a page, every page of the repository's root, of .github and of docs, the
English texts of the interface, and docstrings and error messages. Code and quotations are skipped. The rules are in
CONTRIBUTING.md.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeGuard

ROOT = Path(__file__).parents[1]
TEXTS = ROOT / "botservice/texts/en.toml"
LONGEST_SENTENCE = 30  # words
LONG_SENTENCES = 0.06  # of a page's sentences
LONGEST_PAGE = 2_500  # words without code; generated pages, and those that grow with each release, are longer
LOOKED_UP = {"CHANGELOG.md", "docs/reference.md", "docs/stored-data.md"}

WORDS = {
    r"rooms?": "package",
    r"floors?": "layer",
    r"anew": "again",
    r"in vain": "say what failed",
    r"mend(?:s|ed|ing)?": "fix",
    r"heard": "received",
    r"beside": "alongside, next to",
    r"whoever": "name the person",
    r"lines? of time": "timeline",
    r"upkeep": "maintenance",
    r"oracle": "checker",
    r"parked": "suspended",
    r"glimpse|peek": "preview",
    r"speaks? as": "OpenAI-compatible",
    r"asks? Telegram": "polls Telegram",
    r"waits? for a word|have their word": "awaiting approval",
    r"as_said": "rendering",
    r"goes? by": "uses",
    r"is let in|are let in|lets? in": "has access",
    r"works on beside": "rolling upgrade",
    r"thereof|wherein|whereof|therein": "write a second sentence",
    r"(?:is|are) owed": "is pending",
}
# In docstrings and error messages, where some of these are names of the code: the room of a prompt, `peek`, `floor`.
_NAMES = {r"rooms?", r"floors?", r"glimpse|peek", "heard"}
CODE_WORDS = {word: better for word, better in WORDS.items() if word not in _NAMES}
_PARTICIPLES = "Kept|Shown|Read|Named|Refused|Counted|Said|Asked|Stored|Sent|Left|Found|Deleted|Measured"
SHAPES = {
    r"^Who (?!(?:is|are|was|has|can|may|does|did)\b[^.]*\?)[a-z]+[^?]*$": "begins with a relative clause",
    r"^(?:What|Whatever|Which|Where what) [^?]*$": "begins with a relative clause",
    rf"^(?:{_PARTICIPLES}) (?:is|are|was|were)\b": "is inverted",
}
_FENCE = re.compile(r"^ *(`{3,}|~{3,})")


class Finding(NamedTuple):
    """A place and what is wrong there."""

    line: int
    text: str


def read_blocks(page: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each paragraph, list item, heading and table cell."""
    fence, begun = "", 0
    block: list[str] = []
    for number, line in enumerate(page.splitlines(), 1):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        text = line.strip()
        starts = (
            bool(mark)
            or not text
            or text.startswith(("#", "|", "- ", "* ", ">", "<", "!"))
            or re.match(r"\d+\. ", text)
        )
        if starts and block:
            yield begun, " ".join(block)
            block = []
        if mark:
            fence = mark[1]
        elif text.startswith("|"):
            yield from ((number, cell.strip()) for cell in text.strip("|").split("|") if cell.strip(" -:"))
        elif text and not text.startswith(("<", "!")):
            begun = begun if block else number
            block.append(re.sub(r"^(?:#+|[-*>]|\d+\.) +", "", text))
    if block:
        yield begun, " ".join(block)


def plain(text: str) -> str:
    """Return a block without code, quotations, addresses and marks."""
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"[\"“][^\"”]*[\"”]|\*[^*]+\*(?!\*)", "QUOTE", text.replace("**", ""))
    return re.sub(r"\]\([^)]*\)|[\[\]]", "", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a block."""
    return [part for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z(])", text) if part]


def check(name: str, page: str) -> Iterator[Finding]:
    """Yield what is wrong with a page."""
    words = total = long = 0
    longest: list[Finding] = []
    for line, block in read_blocks(page):
        text = plain(block)
        words += len(text.split())
        yield from _find_words(line, text, WORDS)
        for sentence in sentences(text):
            yield from _find_shapes(line, sentence)
            count = len(sentence.split())
            total += 1
            if count > LONGEST_SENTENCE:
                long += 1
                longest.append(Finding(line, f"a sentence of {count} words"))
    if long > max(1, LONG_SENTENCES * total):
        yield from longest
    if words > LONGEST_PAGE and name not in LOOKED_UP:
        yield Finding(1, f"{words} words are more than {LONGEST_PAGE}: divide the page")


def read_docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring and each error message of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield getattr(node, "lineno", 1), text
        elif isinstance(node, ast.Raise):
            yield from ((part.lineno, part.value) for part in ast.walk(node) if _is_text(part))


def _is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


def check_code(source: str) -> Iterator[Finding]:
    """Yield the private words in the docstrings and error messages of a module."""
    for line, text in read_docstrings(source):
        yield from _find_words(line, plain(re.sub(r"^ *\w+: ", "", text, flags=re.MULTILINE)), CODE_WORDS)


def check_texts(source: str) -> Iterator[Finding]:
    """Yield what is wrong with the English texts of the interface."""
    for number, line in enumerate(source.splitlines(), 1):
        _, sign, quoted = line.partition(' = "')
        if sign:
            text = re.sub(r"\{\w+\}", "X", quoted.rstrip('"'))
            yield from _find_words(number, text, WORDS)
            for sentence in sentences(text.replace("\\n", " ")):
                if sentence.endswith("."):
                    yield from _find_shapes(number, sentence)
                if len(sentence.split()) > LONGEST_SENTENCE:
                    yield Finding(number, f"a sentence of {len(sentence.split())} words")


def _find_words(line: int, text: str, words: Mapping[str, str]) -> Iterator[Finding]:
    for pattern, better in words.items():
        for found in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE):
            yield Finding(line, f"“{found[0]}”: {better}")


def _find_shapes(line: int, sentence: str) -> Iterator[Finding]:
    for pattern, problem in SHAPES.items():
        if re.search(pattern, sentence):
            yield Finding(line, f"“{sentence[:60]}” {problem}")


def main(names: list[str]) -> int:
    """Print the findings and return 1 if there are any."""
    pages = [Path(name) for name in names] or [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / ".github").rglob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        TEXTS,
        *sorted((ROOT / "botservice").rglob("*.py")),
        *sorted((ROOT / "transports").rglob("*.py")),
    ]
    count = 0
    for path in pages:
        name = path.resolve().relative_to(ROOT).as_posix()
        text = path.read_text("utf-8")
        found = check_texts(text) if path == TEXTS else check_code(text) if path.suffix == ".py" else check(name, text)
        for finding in found:
            print(f"{name}:{finding.line}: {finding.text}")
            count += 1
    print(f"{count} findings in {len(pages)} pages")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
