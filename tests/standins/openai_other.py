"""Embeddings and transcriptions: what a request must be, and what comes back."""

import base64
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from standins.bot_api.calls import ApiError, Upload, split_multipart
from standins.openai_checks import EMBEDDING_FIELDS, TRANSCRIPTION_FIELDS, check_fields
from standins.openai_refusals import refuse
from standins.openai_replies import estimate_tokens

AUDIO_ENDINGS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
MAX_AUDIO_BYTES = 25 * 1024 * 1024
MAX_INPUTS = 2048
MAX_INPUT_TOKENS = 8192


def embeddings(body: dict[str, Any], embed: Callable[[str], Sequence[float]]) -> dict[str, Any]:
    """Return the answer to an embeddings request: unit vectors, as numbers or as base64."""
    check_fields(body, EMBEDDING_FIELDS)
    inputs, tokens = _inputs(body)
    data = []
    for index, text in enumerate(inputs):
        vector = list(embed(text))[: body.get("dimensions") or None]
        length = math.sqrt(sum(number * number for number in vector)) or 1.0
        vector = [number / length for number in vector]
        value: Any = vector
        if body.get("encoding_format") == "base64":
            value = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": value})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def read_form(raw: bytes, content_type: str) -> tuple[dict[str, Any], Upload | None]:
    """Return the fields and the file of a transcription request."""
    try:
        parts = split_multipart(raw, content_type)
    except ApiError as error:
        raise refuse("Could not parse multipart form") from error
    fields = {
        part.field.removesuffix("[]"): part.data.decode("utf-8", "replace") for part in parts if not part.filename
    }
    return fields, next((part for part in parts if part.filename), None)


def check_transcription(fields: dict[str, Any], file: Upload | None) -> Upload:
    """Return the audio of a transcription request.

    Raises:
        RefusedError: OpenAI would refuse it.
    """
    check_fields(fields, TRANSCRIPTION_FIELDS)
    if file is None or "model" not in fields:
        missing = "file" if file is None else "model"
        raise refuse(f"Missing required parameter: '{missing}'.", param=missing, code="missing_required_parameter")
    if file.filename.rpartition(".")[2].lower() not in AUDIO_ENDINGS:
        raise refuse(f"Unrecognized file format. Supported formats: {list(AUDIO_ENDINGS)}")
    if len(file.data) > MAX_AUDIO_BYTES:
        message = f"Maximum content size limit ({MAX_AUDIO_BYTES}) exceeded ({len(file.data)} bytes read)"
        raise refuse(message, status=413)
    if not file.data:
        raise refuse("Audio file is too short. Minimum audio length is 0.1 seconds.", code="audio_too_short")
    return file


def _inputs(body: dict[str, Any]) -> tuple[list[str], int]:
    if not isinstance(body.get("model"), str):
        raise refuse("you must provide a model parameter")
    given = body.get("input")
    inputs = [given] if isinstance(given, str) else given
    if not isinstance(inputs, list) or not all(isinstance(text, str) for text in inputs):
        raise refuse("'$.input' is invalid. Please check the API reference.", param="input")
    if not inputs or any(not text for text in inputs):
        raise refuse("Invalid 'input': input cannot be an empty string.", param="input")
    if len(inputs) > MAX_INPUTS:
        message = f"Invalid 'input': maximum length is {MAX_INPUTS}, but got an array with length {len(inputs)}."
        raise refuse(message, param="input", code="array_above_max_length")
    sizes = [estimate_tokens(text) for text in inputs]
    if max(sizes) > MAX_INPUT_TOKENS:
        raise refuse(
            f"This model's maximum context length is {MAX_INPUT_TOKENS} tokens, however you requested "
            f"{max(sizes)} tokens ({max(sizes)} in your prompt; 0 for the completion). "
            "Please reduce your prompt; or completion length."
        )
    return inputs, sum(sizes)
