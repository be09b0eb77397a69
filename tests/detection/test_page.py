"""What rules see of a page."""

from __future__ import annotations

import pytest

from scrapy_cells.detection import Page
from tests.detection.answers import LONG, answer, page


def seen(body: str | bytes, **options: object) -> Page:
    return Page(*answer(body, **options))  # type: ignore[arg-type]


def test_visible_text_leaves_out_what_is_not_shown() -> None:
    """Scripts, styles, comments, templates and noscript are not read by anyone."""
    body = page(
        "<style>a{}</style><script>var a='<p>b</p>'</script>",
        "One <!-- two --><b>three</b><template>four</template>"
        "<noscript>five</noscript><textarea>six</textarea> &amp; seven",
        "Title",
    )
    assert seen(body).text == "one three & seven"
    assert seen(body).unshown == "five"


def test_visible_text_ends_at_its_bound() -> None:
    """No rule needs more than 4,000 characters, however long the page is."""
    assert len(seen(page("", LONG * 10)).text) == 4000
    assert not seen(page("", LONG)).is_short


def test_a_long_tag_is_no_text() -> None:
    """Pictures inside a page must not make it look long."""
    body = page("", f'<p>Hm</p><img src="data:image/png;base64,{"A" * 90_000}">ok')
    assert seen(body).text == "hm ok"


def test_the_title_is_cleaned() -> None:
    """Blanks collapse and entities are decoded."""
    assert seen(page("", "", " Tea &amp;\n Toast ")).title == "tea & toast"
    assert seen("<html><title>never closed").title == "never closed"
    assert seen("<html><body>none").title == ""


def test_tags_are_read_with_any_quotes() -> None:
    """Attribute values may be quoted or bare and hold ``>`` and entities."""
    found = seen(
        "<html><form DATA-X='a>b' ID=gate ACTION=\"/a?b=1&amp;c=2\">"
        "<iframe src=/frame></iframe></form></html>"
    )
    assert found.actions == ["/a?b=1&c=2"]
    assert found.sources == ["/frame"]
    assert found.has("id", "gate")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<html><div id="gate">', True),
        ("<html><div class=x id='gate' title=y>", True),
        ("<html><div id=gate>", True),
        ('<html><div id="gates">', False),
        ('<html><div data-id="gate">', False),
        ('<html><div title="id=gate">', False),
        ("<html><p>id=gate</p>", False),
        ('<html><!-- <div id="gate"> -->', False),
        ("<html><script>'<div id=\"gate\">'</script>", False),
    ],
)
def test_ids_count_in_real_tags_only(body: str, expected: bool) -> None:
    """An id in prose, a comment or a script is none."""
    assert seen(body).has("id", "gate") is expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("window.gate=1", True),
        ("var a = 'x'; gate = {}", True),
        ("var a = 'it\\'s'; /* no */ gate()", True),
        ("var a = 'gate'", False),
        ('var a = "say \\"gate\\""', False),
        ("var a = `gate`", False),
        ("// gate", False),
        ("/* gate", False),
    ],
)
def test_names_in_scripts_count_where_they_run(script: str, expected: bool) -> None:
    """A name in a string or a comment of a script does nothing."""
    assert seen(page(f"<script>{script}</script>")).runs("gate") is expected


def test_data_blocks_are_no_scripts() -> None:
    """JSON in a script element does not run, modules do."""
    data = page('<script type="application/json">{"a": gate}</script>')
    module = page('<script type="module">gate()</script>')
    assert not seen(data).runs("gate")
    assert seen(module).runs("gate")


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b"<!-- x --><p>", "", "html"),
        (b"\xef\xbb\xbf <!DOCTYPE html>", "", "html"),
        (b'{"a": 1}', "text/html", "json"),
        (b'<?xml version="1.0"?><urlset>', "", "xml"),
        (b'<?xml version="1.0"?><html xmlns="x">', "", "html"),
        (b"error code: 1015", "text/html", "text"),
        (b"a;b;c", "text/csv", "text"),
        (b"a\0b", "text/html", "binary"),
        (b"abc", "image/png", "binary"),
        (b" \n", "text/html", "empty"),
        (b"<custom>x", "text/html", "html"),
        (b"<rss>", "application/rss+xml", "xml"),
    ],
)
def test_the_kind_is_told_from_the_body_first(
    body: bytes, content_type: str, kind: str
) -> None:
    """Labels are often wrong, above all on walls."""
    assert seen(body, headers={"Content-Type": content_type}).kind == kind


def test_the_landed_address_joins_a_location() -> None:
    """A redirect's target counts as its address, relative ones are joined."""
    headers = {"Location": "../Sorry/index?q=1"}
    found = seen("", status=302, headers=headers, url="https://www.google.com/a/b")
    assert found.landed == "www.google.com/sorry/index?q=1"
    broken = {"Location": "http://[broken/"}
    assert seen("", status=302, headers=broken).landed == ""
