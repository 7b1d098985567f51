"""What people see and can do in Slack."""

from typing import Final

from botservice.capabilities import Capabilities

CAPABILITIES: Final = Capabilities(
    label="Slack",
    command_prefix="!",
    streaming="a message that grows",
    thinking="the session's status",
    tools="tasks, several as a plan, with details in direct conversations",
    approval="buttons under the question, or commands",
    buttons="below the message",
    files_in="up to 20 MB: pictures, texts, PDFs, canvases, lists",
    files_out="uploads",
    tables="a table that people can sort; where there are none, text",
    edits="change what is remembered",
    deletions="change what is remembered",
    stops="the session's button, or !stop",
    errors="a message in your language",
    personal="seen by the asker alone",
    feedback="👍 or 👎 below the answer, or as a reaction",
    conversations="each direct conversation, each thread",
)
