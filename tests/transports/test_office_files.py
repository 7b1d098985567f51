"""Office documents that people send are read: text, headings and tables, each in a process with limits."""

import pytest
from standins import office

from botservice.agent.document_reader import OfficeReader
from botservice.core.messages import Attachment
from transports.common.documents import DocumentReaders, read_document

LETTER = b"From: ann@example.org\nTo: bob@example.org\nSubject: Lunch\nContent-Type: text/plain\n\nSee you at noon.\n"
ROWS = [["City", "Desks"], ["Lisbon", "12"]]
TABLE = "| City | Desks |\n| --- | --- |\n| Lisbon | 12 |"
READ = [
    ("leave.docx", office.docx("# Leave", "28 days a year.", ROWS), f"# Leave\n\n28 days a year.\n\n{TABLE}"),
    ("desks.xlsx", office.xlsx("Desks", *ROWS), f"## Desks\n\n{TABLE}"),
    ("plan.pptx", office.pptx("Ship in May", "Ten thousand"), "Ship in May"),
    ("rules.odt", office.odt("Rules", "Be kind."), "# Rules\n\nBe kind."),
    ("book.epub", office.epub("Chapter One", "It begins."), "# Chapter One\n\nIt begins."),
    ("note.rtf", rb"{\rtf1\ansi Hello {\b bold} world}", "Hello **bold** world"),
    ("lunch.eml", LETTER, "See you at noon."),
]


async def read(data: bytes, name: str, office: OfficeReader | None) -> str:
    attachment = Attachment("application/octet-stream", name, data)
    _, said = await read_document(attachment, f"file, {name}", DocumentReaders(office=office))
    return said.text


@pytest.mark.parametrize(("name", "data", "text"), READ, ids=[name for name, _, _ in READ])
async def test_a_document_is_read_with_its_headings_and_tables(name: str, data: bytes, text: str) -> None:
    said = await read(data, name, OfficeReader())
    assert said.startswith(f"[file, {name}]\n")
    assert text in said


async def test_the_kind_that_the_platform_names_counts_where_the_name_says_nothing() -> None:
    attachment = Attachment(OfficeReader.MIME_TYPES[".docx"], "upload", office.docx("Hello"))
    _, said = await read_document(attachment, "file, upload", DocumentReaders(office=OfficeReader()))
    assert said.text == "[file, upload]\nHello"


async def test_a_damaged_or_hostile_document_costs_nothing_but_itself() -> None:
    reader = OfficeReader()
    for data in (b"", b"no document", office.docx("x")[:200], office.bomb(200)):
        assert await read(data, "a.docx", reader) == "[file, a.docx: its text cannot be read]"
    said = await read(office.with_entities(), "a.docx", reader)
    assert "root:" not in said
    assert len(said) < 1_000


async def test_without_the_package_a_document_is_named_and_not_read() -> None:
    assert await read(office.docx("Hello"), "a.docx", None) == "[file, a.docx]"
