"""Lines of a service's log: JSON, and nothing of what somebody sent."""

import io
import json
import logging
import sys

import pytest

from tacit.service.http import LOG
from tacit.service.json_log import log_json_lines

CANARY = "canary-4711"


@pytest.fixture
def log():
    names = ("tacit.service", "uvicorn.error")
    before = [
        (one, one.handlers, one.propagate, one.level)
        for one in map(logging.getLogger, names)
    ]
    stream = io.StringIO()
    log_json_lines(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    for one, handlers, propagate, level in before:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def test_a_line_says_when_how_grave_and_what(log):
    LOG.info("round %d: %s", 3, "open")
    [line] = log()
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "tacit.service",
        "message": "round 3: open",
    }


def test_an_exception_is_its_type_and_no_more(log):
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("uvicorn.error").error("failed", exc_info=sys.exc_info())
    [line] = log()
    assert line["error"] == "ValueError"
    assert CANARY not in json.dumps(line)


def test_a_line_end_in_a_message_stays_in_its_line(log):
    LOG.warning("two\nlines")
    assert [line["message"] for line in log()] == ["two\nlines"]


def test_requests_are_not_logged(log):
    logging.getLogger("uvicorn.error").info("127.0.0.1 asked")
    assert log() == []
