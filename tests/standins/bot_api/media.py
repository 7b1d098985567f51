"""Methods that send and fetch files."""

import itertools
from typing import Any

from standins.bot_api.calls import Call, bad_request
from standins.bot_api.files import attached
from standins.bot_api.messages import caption, place
from standins.bot_api.methods import Bench, method

_albums = itertools.count(13_000_000_000_000_001)
TOGETHER = ({"photo", "video"}, {"document"}, {"audio"})


def _sender(kind: str) -> None:
    @method(f"send{kind.title().replace('_', '')}")
    def send(bench: Bench, call: Call) -> dict[str, Any]:
        words = {} if kind in {"sticker", "video_note"} else caption(bench, call)
        bench.world.reachable(call)
        return place(bench, call, attached(kind, bench.world.files.sent(call, kind)) | words).wire


for _kind in ("photo", "document", "voice", "audio", "video", "animation", "video_note", "sticker"):
    _sender(_kind)


@method("sendMediaGroup")
def send_media_group(bench: Bench, call: Call) -> list[dict[str, Any]]:
    media = call.object("media", list, "media")
    if not media or not all(isinstance(item, dict) for item in media):
        raise bad_request("can't parse media: there must be an array of media")
    if not 2 <= len(media) <= 10:
        raise bad_request(f"there must be from 2 to 10 media in an album, and there are {len(media)}")
    kinds = {str(item.get("type")) for item in media}
    if not any(kinds <= allowed for allowed in TOGETHER):
        raise bad_request(f"{min(kinds).capitalize()} can't be mixed with other media types")
    bench.world.reachable(call)
    contents = []
    group_id = str(next(_albums))
    for item in media:
        inner = Call("inputMedia", {**item}, call.files, call.seq)
        file = bench.world.files.sent(inner, item["type"], item.get("media", ""))
        contents.append(attached(item["type"], file) | caption(bench, inner) | {"media_group_id": group_id})
    return [place(bench, call, content).wire for content in contents]


@method("sendLocation")
def send_location(bench: Bench, call: Call) -> dict[str, Any]:
    try:
        location = {name: float(call.text(name)) for name in ("latitude", "longitude")}
    except ValueError as error:
        raise bad_request("latitude or longitude is not a number") from error
    return place(bench, call, {"location": location}).wire


@method("getFile")
def get_file(bench: Bench, call: Call) -> dict[str, Any]:
    file = bench.world.files.fetchable(call.text("file_id"))
    return {"file_id": file.file_id, "file_unique_id": file.unique_id, "file_size": file.size, "file_path": file.path}
