"""In which order a real Chromium shows the arguments of a question: as they run, also those from right to left."""

import html
from typing import Any

import pytest

from botservice.core.visible_text import FSI, PDI
from botservice.turns.readable_arguments import readable_arguments

pytest.importorskip("playwright.async_api")
pytestmark = pytest.mark.asyncio(loop_scope="session")
# The characters of an element from left to right, as they are seen.
SEEN = """element => {
    const text = element.firstChild, seen = [], range = document.createRange();
    for (let at = 0; at < text.length; at += 1) {
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        const box = range.getBoundingClientRect();
        if (box.width > 0) seen.push([box.left, text.data[at]]);
    }
    return seen.sort((one, other) => one[0] - other[0]).map(each => each[1]).join("");
}"""


@pytest.mark.parametrize(
    "arguments",
    [
        {"way": ["א", 5, 900, "ב"]},
        {"run": 'pay "א" 5 900 "ב"'},
        {"run": '["א", 5, 900, "ב"]'},
        {"run": "א; send 900 to ב"},
        {"pay": {"א": "ב", "amount": 5, "ג": ["ד", 1, 2]}},
        {"amounts": "from \u0665 \u0669\u0660\u0660 to"},
    ],
)
async def test_arguments_are_seen_in_the_order_in_which_they_run(open_page: Any, arguments: dict[str, Any]) -> None:
    shown, _ = readable_arguments(arguments)
    screen = await open_page("about:blank")
    await screen.set_content(f"<pre><code>{html.escape(shown)}</code></pre>")
    assert await screen.eval_on_selector("code", SEEN) == shown.replace(FSI, "").replace(PDI, "")
