"""What stands in files: text in any usual encoding, the pages of PDFs, what is said in recordings."""

import json
from collections.abc import Iterator

import pytest
from standins.serving import Exchange, Served

from botservice.agent.document_reader import PdfReader
from botservice.core.errors import LLMError
from botservice.core.messages import Attachment
from botservice.llm.openai.speech import OpenAITranscriber
from transports.common.documents import MAX_TEXT_CHARACTERS, DocumentReaders, read_document


def pdf(*texts: str) -> bytes:
    """Return a PDF with a page for each text."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in texts:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /Resources {font} /Contents {number + 1} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} /MediaBox [0 0 612 792] >>"
    body, offsets = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    start = len(body)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    return body + f"{end}startxref\n{start}\n%%EOF\n".encode()


async def read(data: bytes, mime_type: str, name: str = "file", reading: DocumentReaders | None = None) -> str:
    _, said = await read_document(Attachment(mime_type, name, data), f"file, {name}", reading or DocumentReaders())
    return said.text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("größe ✓".encode(), "größe ✓"),
        ("größe".encode("utf-16"), "größe"),
        (b"\xef\xbb\xbfbom", "bom"),
        ("größe".encode("cp1252"), "größe"),
        (b"a\0b", None),
        (b"", ""),
    ],
)
async def test_text_is_read_in_any_usual_encoding(data: bytes, said: str | None) -> None:
    expected = "[file, a.txt]" if said is None else f"[file, a.txt]\n{said}"
    assert await read(data, "text/plain", "a.txt") == expected


async def test_a_long_text_says_that_it_goes_on() -> None:
    said = await read(b"x" * 30_000, "text/plain")
    assert said.count("x") == MAX_TEXT_CHARACTERS
    assert said.endswith("[it goes on; these are its first 20000 characters]")


async def test_what_is_no_text_is_named() -> None:
    assert await read(b"\x7fELF\0\0\0", "application/octet-stream", "a.out") == "[file, a.out]"
    assert await read(b"print(1)", "application/octet-stream", "a.py") == "[file, a.py]\nprint(1)"


@pytest.mark.slow
async def test_a_pdf_is_read_page_by_page() -> None:
    reading = DocumentReaders(read_pdf=PdfReader())
    assert (
        await read(pdf("One page", "Another"), "application/pdf", "a.pdf", reading)
        == "[file, a.pdf]\nOne page\n\nAnother"
    )
    assert await read(pdf(""), "application/pdf", "a.pdf", reading) == "[file, a.pdf: it has no text, only pictures]"
    for broken in (b"", b"%PDF-1.4", pdf("x")[:200], b"no pdf" * 100):
        assert await read(broken, "application/pdf", "a.pdf", reading) == "[file, a.pdf: its text cannot be read]"


class Ears(Served):
    """A server that hears one thing."""

    def __init__(self) -> None:
        super().__init__()
        self.status = 200
        self.answer: object = {"text": "Hello world"}
        self.bodies: list[bytes] = []
        self.keys: list[str | None] = []

    async def handle(self, exchange: Exchange) -> None:
        assert exchange.path == "/v1/audio/transcriptions"
        self.bodies.append(await exchange.body())
        self.keys.append(exchange.headers.get("authorization"))
        await exchange.answer(self.status, json.dumps(self.answer).encode())


@pytest.fixture
def ears() -> Iterator[Ears]:
    server = Ears()
    with server.serving():
        yield server


async def test_a_voice_message_is_transcribed(ears: Ears) -> None:
    transcriber = OpenAITranscriber(f"{ears.url}/v1/", model="gpt-transcribe", api_key="key")
    said = await read(b"OggS", "audio/ogg", "voice message", DocumentReaders(transcriber))
    assert said == "[file, voice message, transcribed]\nHello world"
    assert ears.keys == ["Bearer key"]
    assert b"gpt-transcribe" in ears.bodies[0]
    assert b"OggS" in ears.bodies[0]
    ears.answer = {"text": " "}
    assert await read(b"OggS", "audio/ogg", "v", DocumentReaders(transcriber)) == "[file, v: nothing is said in it]"


@pytest.mark.parametrize(("status", "answer"), [(500, {}), (401, {}), (200, {}), (200, []), (200, None)])
async def test_speech_that_cannot_be_understood_is_said_so(ears: Ears, status: int, answer: object) -> None:
    ears.status, ears.answer = status, answer
    transcriber = OpenAITranscriber(f"{ears.url}/v1", model="gpt-transcribe")
    with pytest.raises(LLMError):
        await transcriber.transcribe(Attachment("audio/ogg", None, b"x"))
    assert await read(b"x", "audio/ogg", "v", DocumentReaders(transcriber)) == "[file, v: it could not be understood]"


async def test_without_a_transcriber_a_recording_is_named() -> None:
    assert await read(b"x", "audio/ogg", "v") == "[file, v: it cannot be listened to here]"
