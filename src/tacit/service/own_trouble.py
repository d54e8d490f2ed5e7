"""What an operator's own machine refuses, as an answer to whoever asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tacit.errors import Damaged, Refused
from tacit.service.http import LOG, Failure
from tacit.system_errors import DiskError

_LATER = 30  # seconds after which the same may be asked again


@contextlib.contextmanager
def own_trouble() -> Iterator[None]:
    """Answer 503 if the disk is full or the operator has to look after the service.

    Nothing was done; whoever asked may ask the same again. It is not told why.
    """
    try:
        yield
    except (DiskError, Damaged) as error:
        LOG.error("the disk: %s", type(error).__name__)
        said = "the disk of this operator cannot be written; ask again later"
        raise Failure(503, "Disk", said, retry_after=_LATER) from None
    except Refused as error:  # names a folder or a round, and nobody
        LOG.error("nothing was done: %s", error)
        said = "this operator has to look after its service; ask again later"
        raise Failure(503, "Refused", said, retry_after=_LATER) from None
