"""The files of a message, once they are fetched and read."""

from dataclasses import dataclass, field

from botservice.messages import Attachment
from transports.files.read_cache import FileText


@dataclass(slots=True)
class Fetched:
    """Files, and in words what is in them or why they are not there.

    Attributes:
        unread: What those are called of which the person is to be told that they were not read.
    """

    attachments: list[Attachment] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, attachment: Attachment | None, said: FileText) -> None:
        """Take one more file, with what is said of it."""
        if attachment is not None:
            self.attachments.append(attachment)
        if said.text:
            self.remarks.append(said.text)
        if said.unread is not None:
            self.unread.append(said.unread)
