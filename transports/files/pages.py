"""The text of PDFs, through pypdf."""

import io


def read_pdf(data: bytes, max_characters: int) -> str:
    """Return the text on a PDF's pages, up to about max_characters.

    Raises:
        ValueError: it is locked, or no PDF.
    """
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ValueError("the PDF is locked with a password")
        pages: list[str] = []
        for page in reader.pages:
            pages.append(page.extract_text().strip())
            if sum(map(len, pages)) > max_characters:
                break
    except PyPdfError as error:
        raise ValueError("the PDF cannot be read") from error
    return "\n\n".join(page for page in pages if page)
