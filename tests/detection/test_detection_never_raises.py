"""No input makes the detector raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from scrapy_cells.detection import Detector, Page
from scrapy_cells.domain.outcome import Outcome, Verdict

PIECES = [
    *(b"<form '", b'<form "', b"<script>", b"</script", b"<!--", b"-->", b"<title>"),
    *(b"<", b">", b"<iframe src=", b"<meta http-equiv=refresh content=", b"<noscript>"),
    *(b"_cf_chl_opt=", b"captcha-delivery.com", b"dd={", b"id=px-captcha", b"class="),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b"/*", b"`", b"\\'", b"\n", b" ", b"&#"),
    *(b"/_Incapsula_Resource?", b"you have been blocked", b"error code: 1015"),
    *(b"<body onload=", b"{", b"["),
]
DETECTOR = Detector(ok_selector="#served")


@settings(max_examples=300, deadline=None)
@given(
    body=st.one_of(
        st.binary(max_size=400),
        st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4))).map(
            b"".join
        ),
    ),
    status=st.integers(min_value=100, max_value=999),
    content_type=st.one_of(
        st.sampled_from(["text/html", "application/json", "image/png", "; charset="]),
        st.text(max_size=20),
    ),
    cls=st.sampled_from([Response, TextResponse, HtmlResponse]),
    url=st.sampled_from(
        ["https://shop.example/", "http://[::1", "about:blank", "data:,x"]
    ),
)
def test_any_answer_gets_a_verdict(
    body: bytes, status: int, content_type: str, cls: type[Response], url: str
) -> None:
    """Random bytes, labels and addresses lead to an outcome like all others."""
    headers = {"Content-Type": content_type.encode("utf-8", "replace")}
    response = cls(url, status=status, headers=headers, body=body)
    verdict = DETECTOR.classify(Request("https://shop.example/"), response)
    assert isinstance(verdict, Verdict)
    assert isinstance(verdict.outcome, Outcome)
    assert not DETECTOR._broken
    assert isinstance(Page(Request("https://a.b"), response).fingerprint, str)


@pytest.mark.parametrize("piece", PIECES)
def test_no_pattern_runs_away(piece: bytes) -> None:
    """Work grows with the size of the input, not with its square."""
    counted: list[Any] = []
    for start in (b"<html>", b"<script>x='';_cf_chl_opt = ", b"[", b"<html><p>"):
        body = start + piece * (600_000 // len(piece))
        response = HtmlResponse("https://shop.example/", body=body)
        counted.append(DETECTOR.classify(Request("https://shop.example/"), response))
    assert len(counted) == 4
