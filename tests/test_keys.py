"""What a product is known by."""

import pytest
from scrapy import Request

from scrapy_cells.config.keys import build_key

URL = "https://shop.example/dp/B00X?ref=1"


@pytest.mark.parametrize(
    ("spec", "key", "explicit"),
    [
        ("url", URL, False),
        ("path", "/dp/B00X", False),
        (r"regex:/dp/(\w+)", "B00X", True),
        (r"regex:/(?:dp|gp):?/(\w+)(\?.*)", "B00X", True),
        ("meta:sku", "S-1", True),
        (lambda request: request.meta["sku"].lower(), "s-1", True),
    ],
)
def test_key_is_found_as_the_setting_says(spec, key, explicit):
    """Only keys that are not addresses are a follow-up's own."""
    find = build_key(spec)
    assert find(Request(URL, meta={"sku": "S-1"})) == key
    assert find.explicit is explicit


@pytest.mark.parametrize("spec", ["meta:sku", r"regex:/item/(\d+)", lambda r: None])
def test_request_without_the_key_has_none(spec):
    """Absence is None, not an error and not an empty key."""
    assert build_key(spec)(Request(URL)) is None


def test_empty_key_counts_as_none():
    """An empty field in the spider's data is no product."""
    assert build_key("meta:sku")(Request(URL, meta={"sku": ""})) is None


def test_group_that_took_no_part_gives_no_key():
    """An optional group may be left out by the address."""
    assert build_key(r"regex:/dp/(\d+)?")(Request(URL)) is None


@pytest.mark.parametrize("value", [0, 17])
def test_numbers_in_meta_are_keys(value):
    """Product numbers need not be strings, and 0 is one of them."""
    assert build_key("meta:sku")(Request(URL, meta={"sku": value})) == str(value)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", 'must be "url", "path"'),
        ("asin", 'must be "url", "path"'),
        (None, 'must be "url", "path"'),
        ("meta:", 'must be "url", "path"'),
        ("regex:", 'must be "url", "path"'),
        ("regex:/dp/[A-Z]+", "needs a group"),
        ("regex:/dp/(", "no regular expression"),
    ],
)
def test_bad_key_says_what_is_allowed(spec, words):
    """The text can stand behind the name of the setting."""
    with pytest.raises(ValueError, match=words):
        build_key(spec)
