"""The words of a rich message, as a person reads them from top to bottom."""

from typing import Any


def words_of(rich_message: dict[str, Any]) -> str:
    return "\n".join(line for block in rich_message.get("blocks", ()) for line in _lines(block))


def text_of(text: Any) -> str:
    if isinstance(text, str):
        return text
    if isinstance(text, list):
        return "".join(map(text_of, text))
    return str(text["expression"]) if text.get("type") == "mathematical_expression" else text_of(text.get("text", ""))


def _lines(block: dict[str, Any]) -> list[str]:  # noqa: PLR0911 - one for each kind
    match block["type"]:
        case "table":
            return [" | ".join(text_of(cell.get("text", "")) for cell in row) for row in block["cells"]]
        case "list":
            return [
                f"{str(item['value']) + '.' if 'value' in item else '•'} {line}"
                for item in block["items"]
                for inner in item["blocks"]
                for line in _lines(inner)
            ]
        case "blockquote":
            return [f"▎{line}" for inner in block["blocks"] for line in _lines(inner)]
        case "expandable_blockquote":
            return [f"▎{line}" for line in text_of(block["text"]).split("\n")]
        case "mathematical_expression":
            return [str(block["expression"])]
        case "divider":
            return ["———"]
        case _:
            return [text_of(block.get("text", ""))]
