"""PDFs that a person made to keep their readers busy, or to fill their memory."""

import zlib


def pdf(content: bytes, pages: int = 1) -> bytes:
    """Return a PDF of which every page draws the same, compressed content."""
    stream = zlib.compress(content, 9)
    kids = b" ".join(b"%d 0 R" % (number + 4) for number in range(pages))
    font = b"<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    page = b"<< /Type /Page /Parent 2 0 R /Resources " + font + b" /Contents 3 0 R >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + kids + b"] /Count %d /MediaBox [0 0 612 792] >>" % pages,
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream) + stream + b"\nendstream",
        *[page] * pages,
    ]
    body, table = b"%PDF-1.4\n", b""
    for number, each in enumerate(objects, 1):
        table += b"%010d 00000 n \n" % len(body)
        body += b"%d 0 obj\n" % number + each + b"\nendobj\n"
    size, start = len(objects) + 1, len(body)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % size
    return body + head + table + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start)


def endless_work(megabytes: int = 4) -> bytes:
    """Return a small PDF that takes minutes to read: millions of letters, each moved to its place."""
    return pdf(b"BT /F1 12 Tf " + b"1 0 0 1 0 0 Tm (ab) Tj " * (megabytes * 45_000) + b"ET")


def endless_memory() -> bytes:
    """Return a small PDF whose pages hold 30 MB of drawn letters each: read, they are more than a reader may hold."""
    return pdf(b"BT /F1 12 Tf " + b"(a)Tj " * (30 * 1024**2 // 6), pages=5)


def empty_for_ever() -> bytes:
    """Return a small PDF whose page is 64 MB of spaces."""
    return pdf(b" " * (64 * 1024**2))


def plain(text: str = "One page") -> bytes:
    """Return a PDF that means no harm."""
    return pdf(f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode())
