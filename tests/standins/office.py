"""Office documents, made of as few parts as programs need to open them."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from html import escape

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_KIND = "application/vnd.openxmlformats-officedocument"


def archive(parts: Mapping[str, str]) -> bytes:
    """Return a ZIP archive of texts by their names."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return written.getvalue()


def _package(main: str, kind: str, parts: Mapping[str, str], more: Sequence[tuple[str, str]] = ()) -> bytes:
    overrides = "".join(
        f'<Override PartName="/{name}" ContentType="{_KIND}.{each}+xml"/>' for name, each in [(main, kind), *more]
    )
    types = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    return archive(
        {
            "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_TYPES}">{types}{overrides}</Types>',
            "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="{main}"/></Relationships>',
            **parts,
        }
    )


def docx(*blocks: str | Sequence[Sequence[str]]) -> bytes:
    """Return a Word document: "# text" is a heading, a list of rows a table, anything else a paragraph."""
    body = "".join(_word_block(block) for block in blocks)
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    return _package(
        "word/document.xml",
        "wordprocessingml.document.main",
        {
            "word/document.xml": f'{_HEAD}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": f'{_HEAD}<w:styles xmlns:w="{_WORD}">{style}</w:styles>',
            "word/_rels/document.xml.rels": f'{_HEAD}<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="rId1" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
        },
        [("word/styles.xml", "wordprocessingml.styles")],
    )


def _word_block(block: str | Sequence[Sequence[str]]) -> str:
    if isinstance(block, str):
        is_heading = block.startswith("# ")
        style = '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' if is_heading else ""
        return f"<w:p>{style}<w:r><w:t>{escape(block.removeprefix('# '))}</w:t></w:r></w:p>"
    rows = ("".join(f"<w:tc>{_word_block(cell)}</w:tc>" for cell in row) for row in block)
    return "<w:tbl>" + "".join(f"<w:tr>{cells}</w:tr>" for cells in rows) + "</w:tbl>"


def xlsx(name: str, *rows: Sequence[str]) -> bytes:
    """Return a workbook with one sheet."""
    cells = ("".join(f'<c t="inlineStr"><is><t>{escape(cell)}</t></is></c>' for cell in row) for row in rows)
    data = "".join(f'<row r="{number}">{each}</row>' for number, each in enumerate(cells, 1))
    return _package(
        "xl/workbook.xml",
        "spreadsheetml.sheet.main",
        {
            "xl/workbook.xml": f'{_HEAD}<workbook xmlns="{_SHEET}" xmlns:r="{_OFFICE}"><sheets>'
            f'<sheet name="{escape(name)}" sheetId="1" r:id="rId1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'{_HEAD}<Relationships xmlns="{_RELATIONS}">'
            f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f'{_HEAD}<worksheet xmlns="{_SHEET}"><sheetData>{data}</sheetData></worksheet>',
        },
        [("xl/worksheets/sheet1.xml", "spreadsheetml.worksheet")],
    )


def pptx(*slides: str) -> bytes:
    """Return slides with one text each."""
    names = [f"ppt/slides/slide{number}.xml" for number in range(1, len(slides) + 1)]
    shown = "".join(f'<p:sldId id="{255 + number}" r:id="rId{number}"/>' for number in range(1, len(slides) + 1))
    relations = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/slide" Target="slides/slide{number}.xml"/>'
        for number in range(1, len(slides) + 1)
    )
    return _package(
        "ppt/presentation.xml",
        "presentationml.presentation.main",
        {
            "ppt/presentation.xml": f'{_HEAD}<p:presentation xmlns:p="{_SLIDES}" xmlns:r="{_OFFICE}">'
            f"<p:sldIdLst>{shown}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": (
                f'{_HEAD}<Relationships xmlns="{_RELATIONS}">{relations}</Relationships>'
            ),
            **{name: _slide(text) for name, text in zip(names, slides, strict=True)},
        },
        [(name, "presentationml.slide") for name in names],
    )


def _slide(text: str) -> str:
    words = f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{escape(text)}</a:t></a:r></a:p></p:txBody>"
    shape = f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="t"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>{words}</p:sp>'
    group = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
    return (
        f'{_HEAD}<p:sld xmlns:p="{_SLIDES}" xmlns:a="{_DRAWING}">'
        f"<p:cSld><p:spTree>{group}{shape}</p:spTree></p:cSld></p:sld>"
    )


def odt(heading: str, text: str) -> bytes:
    """Return an OpenDocument text."""
    office, words = "urn:oasis:names:tc:opendocument:xmlns:office:1.0", "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
    body = f'<text:h text:outline-level="1">{escape(heading)}</text:h><text:p>{escape(text)}</text:p>'
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f'{_HEAD}<office:document-content xmlns:office="{office}" xmlns:text="{words}">'
            f"<office:body><office:text>{body}</office:text></office:body></office:document-content>",
        }
    )


def epub(heading: str, text: str) -> bytes:
    """Return a book of one chapter."""
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": f'{_HEAD}<container version="1.0" '
            'xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
            "book.opf": f'{_HEAD}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Book</dc:title>'
            '<dc:identifier id="i">i</dc:identifier><dc:language>en</dc:language></metadata>'
            '<manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
            "a.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>{escape(heading)}</h1>'
            f"<p>{escape(text)}</p></body></html>",
        }
    )


def bomb(megabytes: int = 600) -> bytes:
    """Return a small Word document that becomes very large when it is unpacked."""
    return docx("x" * (megabytes * 1024**2))


def with_entities() -> bytes:
    """Return a Word document whose entities name a file of the machine and grow without end."""
    nested = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<!DOCTYPE d [<!ENTITY f SYSTEM "file:///etc/passwd"><!ENTITY e0 "ha">{nested}]>'
    body = "<w:p><w:r><w:t>&f;&e9;</w:t></w:r></w:p>"
    return _package(
        "word/document.xml",
        "wordprocessingml.document.main",
        {
            "word/document.xml": f'<?xml version="1.0"?>{doctype}<w:document xmlns:w="{_WORD}">'
            f"<w:body>{body}</w:body></w:document>"
        },
    )
