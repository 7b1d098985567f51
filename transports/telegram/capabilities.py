"""What people see and can do in Telegram."""

from typing import Final

from botservice.capabilities import Capabilities

CAPABILITIES: Final = Capabilities(
    label="Telegram",
    streaming="a draft that grows; in groups a message that is edited",
    thinking='"Thinking…" in the draft',
    tools="the tool's name and what it says, as a thought in the draft",
    approval="buttons under the question, or commands",
    buttons="below the message; one choice, which stays visible",
    files_in="up to 20 MB: pictures, texts, PDFs, sounds",
    files_out="pictures, albums, voice, documents",
    tables="a table; where a chat takes none, text",
    edits="change what is remembered; a question that waits is answered as edited",
    stops="/stop, and the draft's button",
    errors="a message in your language",
    personal="seen by one member alone, where the bot may",
    voice="written down; answered by voice if a setting says so",
    feedback="👍 or 👎 as a reaction",
    conversations="each chat, each topic",
)
