"""What people see and can do in the browser."""

from typing import Final

from botservice.capabilities import Capabilities

CAPABILITIES: Final = Capabilities(
    label="Browser",
    streaming="an answer that grows",
    thinking="dots where the answer will stand",
    tools="cards with arguments and what the tool says",
    approval="buttons under the question, or commands",
    buttons="below the message",
    files_in="10 files, 10 MB together: pictures, texts, PDFs, sounds",
    files_out="shown or saved",
    tables="a table",
    edits="a question is asked again in its place",
    deletions="a whole conversation, with what is known from it",
    stops="the button, Esc, or /stop",
    errors="a message with a button that asks again",
    feedback="👍 or 👎 below the answer",
    conversations="as many as you like, in a list",
)
