"""What a node's operator is told stands in a file that nobody else can read."""

import stat

from tacit.runtime.node_log import NAME, note_failure


def failure(text):
    try:
        raise ArithmeticError(text)
    except ArithmeticError as error:
        return error


def test_failures_are_written_one_after_another_with_where_they_came_from(tmp_path):
    for text in ("first", "second"):
        note_failure(tmp_path, failure(text))
    log = tmp_path / NAME
    told = log.read_text()
    assert told.index("ArithmeticError: first") < told.index("ArithmeticError: second")
    assert "in failure" in told
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_changes_nothing(tmp_path):
    """A node answers as ever: what it says must not depend on its disk."""
    note_failure(tmp_path / "is not there", failure("lost"))
    assert not [*tmp_path.iterdir()]
