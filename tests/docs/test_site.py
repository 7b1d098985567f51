"""The documents and the reference as pages."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

import botservice

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("build_docs", ROOT / "scripts" / "build_docs.py")
build_docs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(build_docs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_site_has_every_document_and_every_public_name_and_no_broken_link(tmp_path, capsys):
    build_docs.main(tmp_path)
    site = tmp_path / ".".join(botservice.__version__.split(".")[:2])
    for document in build_docs.documents():
        assert (site / build_docs.page_of(document)).exists()
    reference = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    page = (site / "index.html").read_text()
    assert all(part in page for part in ('data-md-color-scheme="slate"', 'data-md-component="search"', "mike"))
    assert [name for name in botservice.__all__ if f'>{name}<a class="headerlink"' not in reference] == []
    assert "every link leads somewhere" in capsys.readouterr().out


def test_the_pages_offer_every_version_and_the_first_page_leads_to_the_newest(tmp_path):
    for name in ("1.9", "1.10", "0.17", "assets"):
        (tmp_path / name).mkdir()
    build_docs.write_versions(tmp_path)
    versions = json.loads((tmp_path / "versions.json").read_text())
    assert [(each["version"], each["aliases"]) for each in versions] == [
        ("1.10", ["latest"]),
        ("1.9", []),
        ("0.17", []),
    ]
    assert "url=1.10/" in (tmp_path / "index.html").read_text()


LISTED = """1. One:

   ```sh
   a
   ```

   More.
2. Two
   - deeper
     goes on

   ```text
     b
   ```

Not in it.
"""
DEEPER = """1. One:

    ```sh
    a
    ```

    More.

2. Two
    - deeper
        goes on

    ```text
      b
    ```

Not in it.
"""


def test_a_block_of_code_in_a_list_stays_in_it():
    assert build_docs.staged_text(LISTED, ROOT / "docs" / "x.md", ROOT) == DEEPER


def test_a_page_that_reads_its_document_otherwise_is_found(tmp_path):
    for document in build_docs.documents():
        page = tmp_path / build_docs.page_of(document)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("<article><ol><ol></article>")
    found = list(build_docs.misread_pages(tmp_path))
    assert any(each.startswith("docs/telegram.html: 2 times <ol> where the document has") for each in found)
    assert any(each.startswith("docs/telegram.html: 0 times <pre> where the document has") for each in found)


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a> <a href="c.html">c</a> <a href="b.html#there">b</a>')
    (tmp_path / "b.html").write_text(
        '<h2 id="here">Here</h2> <a href="../outside.html">o</a> <a href="https://x.y">x</a>'
    )
    assert sorted(build_docs.broken_links(tmp_path)) == [
        "a.html: b.html#there",
        "a.html: c.html",
        "b.html: ../outside.html",
    ]


def test_what_models_read_names_every_document_of_the_index_and_holds_every_one(tmp_path):
    build_docs.write_for_models(tmp_path)
    short, whole = (tmp_path / "llms.txt").read_text(), (tmp_path / "llms-full.txt").read_text()
    assert short.startswith("# botservice\n\n> ")
    links = re.findall(r"\]\(([^)]+)\)", short)
    assert len(links) > 20
    assert [link for link in links if not (tmp_path / link).is_file()] == []
    assert [each.name for each in build_docs.documents() if each.read_text() not in whole] == []


def test_every_document_is_in_the_index_or_beside_it():
    listed = {path for _, pages in build_docs.entries() for _, path, _ in pages}
    of_its_own = {each.name for each in ROOT.glob("*.md")}
    documents = [each.relative_to(ROOT) for each in build_docs.documents()]
    missing = [str(each) for each in documents if str(each) not in listed and each.name not in of_its_own]
    assert missing == [], "name it in docs/README.md, under its kind"


def test_a_link_in_code_stays_as_it_is_and_one_to_a_folder_gets_a_page(tmp_path):
    document = ROOT / "docs" / "x.md"
    text = "[e](../examples) [a](../LICENSE)\n```text\n[e](../examples)\n```\n"
    parts = build_docs.staged_text(text, document, tmp_path)
    assert parts == text.replace("../examples)", "../examples/index.md)", 1)
    assert (tmp_path / "LICENSE").exists()
    assert "buttons.py" in (tmp_path / "examples" / "index.md").read_text()
