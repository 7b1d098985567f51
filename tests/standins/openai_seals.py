"""What the model server remembers of the answers that it gave by Responses, and how it seals reasoning."""

import base64
import hashlib
import itertools
import json
import threading
from typing import Any

from standins.openai_refusals import refuse

_ids = itertools.count(1)


def new_id(prefix: str) -> str:
    """Return an id as the real one makes them."""
    return f"{prefix}_{hashlib.sha256(str(next(_ids)).encode()).hexdigest()[:32]}"


class Seals:
    """The answers of one server: which item followed which, and whose reasoning is whose.

    Attributes:
        given: Every item of reasoning that was part of an answer, in order.
    """

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._follower: dict[str, str] = {}
        self._reasoning: dict[str, str] = {}

    def note(self, items: list[dict[str, Any]]) -> None:
        """Take note of the items of an answer."""
        with self._lock:
            self.given.extend(item for item in items if item["type"] == "reasoning")
            for one, other in itertools.pairwise(items):
                if one["type"] == "reasoning":
                    self._follower[one["id"]] = other["id"]
                    self._reasoning[other["id"]] = one["id"]

    def seal(self, item_id: str, thought: str, *, model: str, key: str) -> str:
        """Return reasoning that only the same model opens again, for the same key."""
        content = json.dumps({"id": item_id, "thought": thought, "model": model, "key": key}).encode()
        return base64.b64encode(hashlib.sha256(content).digest() + content).decode()

    def check(self, items: list[dict[str, Any]], *, model: str, key: str) -> None:
        """Check that reasoning is sealed and whole, and that nothing stands without what it belongs to."""
        for place, item in enumerate(items):
            before = items[place - 1] if place else {}
            after = items[place + 1] if place + 1 < len(items) else {}
            if item.get("type") == "reasoning":
                self._check_seal(item, model=model, key=key)
                self._check_follower(item, after)
            elif (needed := self._reasoning.get(str(item.get("id")))) and before.get("id") != needed:
                kind = item.get("type", "message")
                raise refuse(
                    f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item: "
                    f"'{needed}'.",
                    param="input",
                )

    def _check_seal(self, item: dict[str, Any], *, model: str, key: str) -> None:
        if item.get("encrypted_content") is None:
            raise refuse(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input.",
                param="input",
                status=404,
            )
        opened = _open(item["encrypted_content"])
        if opened is None or (opened["id"], opened["model"], opened["key"]) != (item["id"], model, key):
            raise refuse(
                "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or "
                "parsed.",
                code="invalid_encrypted_content",
            )

    def _check_follower(self, item: dict[str, Any], after: dict[str, Any]) -> None:
        follower = self._follower.get(item["id"])
        if not after or after.get("type") == "reasoning" or (follower is not None and after.get("id") != follower):
            raise refuse(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                param="input",
            )


def _open(sealed: Any) -> dict[str, Any] | None:
    try:
        data = base64.b64decode(sealed, validate=True)
        if hashlib.sha256(data[32:]).digest() != data[:32]:
            return None
        opened: dict[str, Any] = json.loads(data[32:])
    except (TypeError, ValueError):
        return None
    return opened
