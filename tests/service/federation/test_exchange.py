"""What is fetched and sent, at its edges; the rest is seen in `test_client`."""

import pytest

from tacit.errors import BadValue
from tacit.service.federation.exchange import Exchange, Fate, checked_url, read_ticket


@pytest.mark.parametrize(
    "url", ["http://host:8000", "https://host/path", "http://[::1]:80"]
)
def test_urls_of_servers_lose_a_last_slash(url):
    assert checked_url(url + "/") == checked_url(url) == url


@pytest.mark.parametrize("url", ["", "host:8000", "file:///etc/passwd", "http://", "x"])
def test_what_is_no_url_of_a_server_is_refused(url):
    with pytest.raises(BadValue, match="must be like"):
        checked_url(url)


def test_a_ticket_has_sixteen_bytes():
    assert read_ticket("00" * 16) == bytes(16)
    for text in ("", "0" * 31, "g" * 32, "00" * 17):
        with pytest.raises(BadValue, match="32 hexadecimal digits"):
            read_ticket(text)


def test_who_is_not_there_is_tried_again():
    with Exchange(seconds=5.0) as exchange:
        found = exchange.post_report(
            "http://127.0.0.1:9",
            b"sealed",
            path=f"/v1/rounds/{bytes(32).hex()}/reports",
        )
    assert found.fate is Fate.AGAIN
    assert "cannot be reached" in found.said
