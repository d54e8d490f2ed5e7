"""Which URLs of servers are allowed: encrypted, or of this machine."""

import pytest

from tacit.errors import BadValue
from tacit.service.urls import (
    checked_host,
    checked_url,
    is_loopback,
    is_on_this_machine,
    public_url,
)


@pytest.mark.parametrize(
    "url",
    [
        *("https://host", "https://host:8443/path", "https://192.0.2.1"),
        *("http://127.0.0.1:8000", "http://127.0.0.2", "http://[::1]:80"),
        *("http://localhost:8000", "https://[2001:db8::1]/a/b"),
    ],
)
def test_urls_of_servers_lose_a_last_slash(url):
    assert checked_url(url + "/") == checked_url(url) == public_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        *("", "host:8000", "file:///etc/passwd", "http://", "x", "https://a b"),
        *("https://user:word@host", "https://host#part", "https://host?query"),
        *("https://host:port", "https://host:443443", "https://[::1", "https://*"),
        *("http://127.0.0.1@host", "http://127.0.0.1\\@host", "https://host\n"),
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url):
    for checked in (checked_url, public_url):
        with pytest.raises(BadValue, match=r"^leader_url='.*must be like") as found:
            checked(url, "leader_url")
        assert "word" not in str(found.value)  # a password is not repeated


@pytest.mark.parametrize(
    "url",
    [
        *("http://films.example", "http://192.0.2.1:8000", "http://0.0.0.0:8000"),
        *("http://[2001:db8::1]", "http://127.1", "http://2130706433"),
        *("http://localhost.films.example", "http://leader:8101"),
    ],
)
def test_what_leaves_this_machine_is_encrypted(url):
    with pytest.raises(BadValue, match=r"is not encrypted.*use https://"):
        checked_url(url)
    assert public_url(url) == url


def test_a_host_that_is_named_may_be_plain_and_no_other():
    assert checked_url("http://leader:8101", plain_hosts=["leader"])
    with pytest.raises(BadValue, match="not encrypted"):
        checked_url("http://leader.example:8101", plain_hosts=["leader"])
    assert checked_host("[2001:db8::1]", "plain_http_hosts") == "2001:db8::1"
    for text in ("", "*", "http://leader", "leader:8101", "a/b"):
        with pytest.raises(BadValue, match=r"plain_http_hosts=.*name of one host"):
            checked_host(text, "plain_http_hosts")


def test_loopback_is_told_from_the_rest():
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert is_loopback(host)
    for host in ("0.0.0.0", "192.0.2.1", "localhost.example", "127.0.0.1.example", ""):
        assert not is_loopback(host)
    assert is_on_this_machine("http://127.0.0.1:1/v1/model")
    assert not is_on_this_machine("https://films.example/127.0.0.1")
