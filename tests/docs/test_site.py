"""The documents and the reference as pages."""

import importlib.util
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
    for document in build_docs.documents():
        assert (tmp_path / document.relative_to(ROOT).with_suffix(".html")).exists()
    reference = (tmp_path / "reference" / "botservice.html").read_text()
    assert [name for name in botservice.__all__ if f'id="{name}"' not in reference] == []
    assert "every link leads somewhere" in capsys.readouterr().out


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


def test_headings_are_linked_to_as_repositories_do_it():
    assert build_docs.anchor("How to <code>add</code> …") == "how-to-add-"
