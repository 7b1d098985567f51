"""What goes out: an answer as its delivery, and a stored message as the page gets it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from botservice.messages import Button, Message, Role
from botservice.storage.blobs import digest_of
from botservice.storage.references import full_text_of
from botservice.turns.buttons import read_buttons, write_buttons
from botservice.turns.transport import BUTTONS, Payload
from botservice.turns.waiting.orders import order_of
from transports.intricacy import is_too_intricate
from transports.web.attached import without_contents

SHOWN_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

_LONGEST_MARKDOWN: Final = 30_000  # characters; anything longer is shown as it is
_SCHEMES: Final = ("http://", "https://", "mailto:", "tel:")


def plan_answer(answer: Message) -> Sequence[Payload]:
    """Return the one delivery of an answer. Its text is there for answers that are not kept, such as an apology."""
    payload: dict[str, object] = {"text": answer.text, "at": answer.created_at.isoformat()}
    files = [
        {"name": each.name, "mime_type": each.mime_type, "sha256": digest_of(each.data)}
        for each in answer.attachments
        if each.data is not None
    ]
    if files:
        payload["files"] = files
    return [payload | ({BUTTONS: write_buttons(answer.buttons)} if answer.buttons else {})]


def show_message(row: Any) -> dict[str, Any]:
    """Return a stored message, given as a row of its table, for the page."""
    shown = {
        "id": row.id,
        "role": row.role,
        "text": full_text_of(row),
        "at": iso(row.created_at),
        "files": [_show_file(row.id, index, each) for index, each in enumerate(row.attachments or ())],
    }
    if row.role == Role.ASSISTANT:
        shown["html"] = render_markdown(row.text)
        shown["buttons"] = show_buttons(row.buttons)
        shown |= {"is_answer": row.answers_turn_id is not None, "verdict": row.verdict}
    else:
        shown["text"] = without_contents(shown["text"], row.attachments or ())
        shown |= {"client_id": row.external_id, "name": row.author_name}
    return shown


def show_buttons(kept: object) -> list[dict[str, str]]:
    """Return stored buttons for the page: what each says or decides when it is pressed, or where it leads."""
    return [
        {"text": each.text, **(_deed_of(each) if each.url is None else {"url": each.url})}
        for each in read_buttons(kept)
        if each.url is None or each.url.startswith(("http://", "https://"))
    ]


def _deed_of(button: Button) -> dict[str, str]:
    """Return what a button does: it says something, or decides about a call of a tool."""
    return {"decides" if order_of(button.says) is not None else "says": button.says}


@lru_cache(maxsize=256)
def render_markdown(text: str) -> str | None:
    """Return text as HTML that holds nothing but text, marks and links; None where it is to be shown as it is."""
    if len(text) > _LONGEST_MARKDOWN or is_too_intricate(text):
        return None
    return str(_MARKDOWN.render(text))


def _show_file(message_id: int, index: int, kept: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "url": f"/web/files/{message_id}/{index}",
        "name": kept.get("name") or kept["mime_type"],
        "mime_type": kept["mime_type"],
        "is_image": kept["mime_type"] in SHOWN_IMAGES and "url" not in kept,
    }


def iso(moment: datetime) -> str:
    """Return a moment as browsers read it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Renderer(RendererHTML):
    """HTML in which links open elsewhere and pictures of other places are links: nothing is fetched unasked."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        token.attrs = {"href": token.attrs["href"], "target": "_blank", "rel": "noopener noreferrer nofollow"}
        return self.renderToken(tokens, idx, options, env)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        alt = self.renderInlineAsText(tokens[idx].children, options, env)
        source = str(tokens[idx].attrs["src"])
        link = Token("link_open", "a", 1, attrs={"href": source})
        label = Token("text", "", 0, content=alt or source)
        close = Token("link_close", "a", -1)
        return str(self.renderInline([link, label, close], options, env))

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self.td_open(tokens, idx, options, env)

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        style = str(tokens[idx].attrs.get("style", ""))  # which the pages' policy forbids
        tokens[idx].attrs = {"class": style.removeprefix("text-align:")} if style else {}
        return self.renderToken(tokens, idx, options, env)

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<div class="table" tabindex="0">{self.renderToken(tokens, idx, options, env)}'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"{self.renderToken(tokens, idx, options, env)}</div>"


def _is_followed(url: str) -> bool:
    return url.strip().lower().startswith(_SCHEMES)


def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    parser.validateLink = _is_followed  # type: ignore[method-assign]  # how the library lets one set it
    return parser


_MARKDOWN: Final = _markdown()
