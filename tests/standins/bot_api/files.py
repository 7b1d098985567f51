"""Files on the server: what people sent, what the bot sent, and what lies in the web for it to fetch."""

import hashlib
import itertools
import mimetypes
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from standins.bot_api.calls import ApiError, Call, Upload, bad_request

MAX_DOWNLOAD_BYTES = 20 * 1024 * 1024
MAX_UPLOAD_BYTES = 50 * 1024 * 1024
MAX_PHOTO_BYTES = 10 * 1024 * 1024
IMAGE_STARTS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"RIFF", b"BM")
FOLDERS = {"photo": "photos", "voice": "voice", "audio": "music", "video": "videos", "video_note": "video_notes"}
ENDINGS = {"photo": ".jpg", "voice": ".oga", "audio": ".mp3", "video": ".mp4", "video_note": ".mp4"}
MIME_TYPES = {"photo": "image/jpeg", "voice": "audio/ogg", "audio": "audio/mpeg", "video": "video/mp4"}
SHAPES: dict[str, dict[str, Any]] = {
    "photo": {"width": 800, "height": 600},
    "voice": {"duration": 3},
    "audio": {"duration": 30},
    "video": {"width": 640, "height": 360, "duration": 5},
    "video_note": {"length": 240, "duration": 5},
    "animation": {"width": 320, "height": 240, "duration": 2},
    "document": {},
    "sticker": {"type": "regular", "width": 512, "height": 512, "is_animated": False, "is_video": False},
}


@dataclass(frozen=True, slots=True)
class File:
    """A stored file. `size` may be larger than its bytes: a file too big to fetch need not exist."""

    file_id: str
    unique_id: str
    kind: str
    name: str
    mime_type: str
    path: str
    size: int
    data: bytes = field(repr=False)

    def as_wire(self) -> dict[str, Any]:
        wire = {"file_id": self.file_id, "file_unique_id": self.unique_id, "file_size": self.size}
        if self.kind in {"document", "audio", "video", "animation"}:
            wire["file_name"] = self.name
        if self.kind in {"document", "audio", "video", "animation", "voice"}:
            wire["mime_type"] = self.mime_type
        return wire | SHAPES.get(self.kind, {})


class Files:
    def __init__(self) -> None:
        self.by_id: dict[str, File] = {}
        self.by_path: dict[str, File] = {}
        self.web: dict[str, bytes] = {}
        self.folder: Path | None = None  # of a server in local mode: files are named by their place on the disk
        self._numbers = itertools.count()

    def add(self, kind: str, data: bytes, *, name: str = "", mime_type: str = "", size: int | None = None) -> File:
        number = next(self._numbers)
        ending = ENDINGS.get(kind, "")
        name = name or f"file_{number}{ending}"
        mime_type = mime_type or MIME_TYPES.get(kind) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        digest = hashlib.sha256(data).hexdigest()
        file = File(
            file_id=f"{kind}-{number}-{digest[:24]}",
            unique_id=digest[:16],
            kind=kind,
            name=name,
            mime_type=mime_type,
            path=f"{FOLDERS.get(kind, 'documents')}/file_{number}{ending or '.bin'}",
            size=len(data) if size is None else size,
            data=data,
        )
        self.by_id[file.file_id] = self.by_path[file.path] = file
        return file

    def fetchable(self, file_id: str) -> File:
        """Return the file that getFile asks for."""
        if not file_id:
            raise bad_request("file_id not specified")
        if file_id not in self.by_id:
            raise bad_request("invalid file_id")
        if self.by_id[file_id].size > MAX_DOWNLOAD_BYTES:
            raise bad_request("file is too big")
        file = self.by_id[file_id]
        if self.folder is None:
            return file
        place = self.folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.data)
        return replace(file, path=str(place))

    def sent(self, call: Call, kind: str, reference: Any = None) -> File:
        """Return the file that a call sends: uploaded, named by its id, or fetched from an address."""
        value = call.params.get(kind) if reference is None else reference
        upload = call.files.get(kind) if reference is None else None
        if isinstance(value, str) and value.startswith("attach://"):
            upload = call.files.get(value.removeprefix("attach://"))
        if upload is not None:
            return self._uploaded(kind, upload)
        if not isinstance(value, str) or not value or value.startswith("attach://"):
            raise bad_request(f"there is no {kind.replace('_', ' ')} in the request")
        if value in self.by_id:
            return self.by_id[value]
        if value in self.web:
            return self._uploaded(kind, Upload(kind, value.rpartition("/")[2], "", self.web[value]))
        if "://" in value:
            raise bad_request("failed to get HTTP URL content")
        raise bad_request("wrong remote file identifier specified: Wrong padding in the string")

    def _uploaded(self, kind: str, upload: Upload) -> File:
        if not upload.data:
            raise bad_request("file must be non-empty")
        size = len(upload.data)
        if size > MAX_UPLOAD_BYTES:
            raise ApiError(413, "Request Entity Too Large")
        if kind == "photo" and size > MAX_PHOTO_BYTES:
            raise bad_request(f"file of size {size} bytes is too big for a photo; the maximum size is 10485760 bytes")
        if kind == "photo" and not upload.data.startswith(IMAGE_STARTS):
            raise bad_request("IMAGE_PROCESS_FAILED")
        mime_type = "" if upload.mime_type == "application/octet-stream" else upload.mime_type
        return self.add(kind, upload.data, name=upload.filename, mime_type=mime_type)


def attached(kind: str, file: File) -> dict[str, Any]:
    """Return the part of a message that carries a file; photos come in two sizes."""
    if kind != "photo":
        return {kind: file.as_wire()}
    small = file.as_wire() | {"width": 90, "height": 68}
    return {kind: [small, file.as_wire()]}
