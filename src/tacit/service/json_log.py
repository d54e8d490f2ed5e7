"""Logs of a service as JSON lines: when, how grave, where from, and what.

There is no access log. A line never has the message of an exception that nobody
expected, nor its traceback, because both may hold what somebody sent: it has the type.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

_LOGGERS = ("tacit.service", "uvicorn.error")


class JsonLines(logging.Formatter):
    """One JSON object per record, on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        when = datetime.fromtimestamp(record.created, UTC)
        said = {
            "time": when.isoformat(timespec="seconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            said["error"] = record.exc_info[0].__name__
        return json.dumps(said, ensure_ascii=False)


def log_json_lines(stream: TextIO | None = None) -> logging.Handler:
    """Send what services log to a stream, stderr if none is given; the handler."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines())
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == _LOGGERS[0] else logging.ERROR)
    return handler
