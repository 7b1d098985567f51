"""The pages under an answer: what strangers called them is a title, on every platform, and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from botservice.agent.sources import with_sources
from botservice.core.formatted_text import Item, List, Paragraph, Span
from botservice.core.visible_text import FSI, PDI
from botservice.llm.chat import Source
from transports.markdown.reading import read_whole

MARKUP = st.sampled_from(
    ["$x$", "\\(", "`", "**", "](https://evil.example)", "\n\n# ", "<b>", "&lt;", "&copy;", "|", "~~"]
)
WORDS = st.lists(MARKUP | st.text(max_size=5), max_size=4).map("".join)
ADDRESSES = st.builds("https://{}.example/{}".format, WORDS, WORDS) | WORDS | st.builds("javascript:{}".format, WORDS)


@given(st.lists(st.builds(Source, ADDRESSES, WORDS), min_size=1, max_size=3))
def test_whatever_a_page_is_called_it_is_one_line_of_words(sources: list[Source]) -> None:
    answer, heading, listed = read_whole(with_sources("It rains [1].", sources, "en"))
    assert (answer, heading) == (Paragraph((Span("It rains [1]."),)), Paragraph((Span("Sources:"),)))
    assert isinstance(listed, List)
    assert len(listed.items) == len(sources)
    for item in listed.items:
        assert isinstance(item, Item)
        (line,) = item.blocks
        assert isinstance(line, Paragraph)
        for span in line.spans:
            assert isinstance(span, Span)
            assert not (span.bold)
            assert not (span.italic)
            assert not (span.code)
            assert not (span.strike)
            assert not (span.spoiler)
            assert span.link is None or span.link.startswith(("https://", "http://"))


def test_a_title_from_right_to_left_does_not_move_the_host() -> None:
    said = with_sources("So [1].", [Source("https://bad.example/x", "שלום (good.example)")], "en")
    assert said.endswith(f"1. [{FSI}שלום (good.example){PDI}](https://bad.example/x) (bad.example)")


def test_an_address_leads_where_it_did() -> None:
    address = "https://a.example/x_y?q=1&copy;=2&r=%20#z(1)"
    listed = read_whole(with_sources("So [1].", [Source(address, "A")], "en"))[-1]
    assert "https://a.example/x%5Fy?q=1&copy%3B=2&r=%20#z%281%29" in str(listed)
