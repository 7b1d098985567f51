"""Code in colours: by Pygments, as far as its rules cannot be made to take long."""

import html
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Final

from pygments.lexer import Lexer, RegexLexer, words
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, Text

if TYPE_CHECKING:
    from pygments.token import _TokenType

_LONGEST: Final = 8_000  # characters of a block that is shown in colours
_LONGEST_LINE: Final = 400
_MOST_EMPTY_LINES: Final = 11  # one after the other

_TOKENS: Final["Mapping[str, tuple[_TokenType, ...]]"] = {
    "comment": (Comment, Generic.Subheading, Generic.Prompt, Generic.Output),
    "keyword": (Keyword, Name.Tag, Generic.Heading),
    "name": (Name.Attribute, Name.Class, Name.Function),
    "builtin": (Name.Builtin, Name.Decorator, Name.Variable),
    "number": (Number,),
    "string": (String,),
    "deleted": (Generic.Deleted,),
    "inserted": (Generic.Inserted,),
}
_KINDS: Final = {token: kind for kind, tokens in _TOKENS.items() for token in tokens}
KINDS: Final = frozenset(_TOKENS)

_WORDS: Final = """abstract as async await bool boolean break byte case catch char class const constexpr continue
data def default defer delete do double else enum export extends extension extern false final finally float fn for
foreach from fun func function go guard if impl implements import in init inline instanceof int interface internal
is lateinit let long loop map match mod module move mut mutating namespace new nil null nullptr object of open operator
out override package private protected protocol pub public readonly ref return sealed select self short signed sizeof
static str string struct super suspend switch synchronized template this throw throws trait true try type typealias
typedef typename typeof undefined union unsafe unsigned use using val var virtual void volatile when where while
with yield"""


class Braces(RegexLexer):
    """Languages of the family of C. Each rule takes time that grows with what it reads and no faster."""

    name = "Braces"
    aliases: ClassVar[list[str]] = []
    tokens: ClassVar = {
        "root": [
            (r"//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?", Comment),
            (r"^[ \t]*#[^\n]*", Comment.Preproc),
            (r'"(?:[^"\\\n]|\\.)*"?|' + r"'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?", String),
            (r"@\w+", Name.Decorator),
            (r"\d[\w.]*", Number),
            (words(_WORDS.split(), prefix=r"\b", suffix=r"\b"), Keyword),
            (r"[A-Z]\w*", Name.Class),
            (r"[^\W\d]\w*(?=\()", Name.Function),
            (r"\w+|\s+|.", Text),
        ]
    }


_BRACES: Final = """c c++ cc cpp cs csharp c# cuda d dart go golang h hpp java javascript js jsx kotlin kt mjs
objective-c objc rs rust scala swift ts tsx typescript zig groovy glsl solidity"""
# What their lexers take for texts of any shape has been measured.
_PYGMENTS: Final = """bash clojure console css diff docker dockerfile elixir graphql haskell html http ini json lua make
makefile nginx pycon python py python3 r ruby rb sh shell shell-session sql toml xml yaml yml zsh"""
LANGUAGES: Final = frozenset(f"{_BRACES} {_PYGMENTS}".split())


def highlight(code: str, language: str) -> str:
    """Return code as HTML, in colours where its language is known and it is not too long."""
    if language not in LANGUAGES or not _is_quick(code):
        return html.escape(code, quote=False)
    return "".join(_spans(code, language))


def _is_quick(code: str) -> bool:
    return (
        len(code) <= _LONGEST
        and max(map(len, code.split("\n"))) <= _LONGEST_LINE
        and _longest_gap(code) <= _MOST_EMPTY_LINES
        and "\0" not in code
    )


def _longest_gap(code: str) -> int:
    """Return how many lines without anything on them stand one after the other, at most."""
    return max(
        (len([*lines]) for is_empty, lines in groupby(code.split("\n"), lambda line: not line.strip()) if is_empty),
        default=0,
    )


@cache
def _lexer(language: str) -> Lexer:
    if language in _BRACES.split():
        return Braces(stripnl=False, ensurenl=False)
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def _spans(code: str, language: str) -> Iterator[str]:
    """Yield code, with what belongs together in one element."""
    said = ((token, text) for token, text in _lexer(language).get_tokens(code) if text)
    for kind, parts in groupby(said, lambda each: _kind_of(each[0])):
        escaped = html.escape("".join(text for _, text in parts), quote=False)
        yield f'<span class="{kind}">{escaped}</span>' if kind else escaped


@cache
def _kind_of(token: "_TokenType") -> str:
    return next((_KINDS[each] for each in reversed(token.split()) if each in _KINDS), "")
