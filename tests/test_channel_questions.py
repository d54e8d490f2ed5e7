"""Which channel it is, is asked by the channels' own modules alone.

A question is a comparison with a channel's name or class, `isinstance` of a delivery, a
match of its kind (`delivers is Sum`). What a channel declares (`noise_shares`, `mixes`,
`sums`) may be read by all. The number of questions elsewhere only falls: it is the
limit of this test.

PYTHONPATH=tests python tests/test_channel_questions.py      prints them
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tacit"
MOST = 15  # questions outside of OWN: 45 before one Manifest, 40 before `Channel.sums`
# Modules of the channels themselves: what they carry, and how a delivery is read.
OWN = ("transport", "aggregation", "service/relay", "service/federation/two_halves.py")
NAMES = {"direct", "shuffle", "secure_sum", "two_servers", "masked_sum"}
CLASSES = {"Direct", "Shuffle", "SecureSum", "TwoServers", "MaskedSum"}
DELIVERIES = {"Each", "Unlinked", "Sum"}


def is_asked(node: ast.AST) -> bool:
    """Whether an expression asks which channel it is."""
    if isinstance(node, ast.Compare):
        return any(map(is_kind, [node.left, *node.comparators]))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        is_check = node.func.id == "isinstance" and is_kind(node.args[1])
        return is_check
    return False


def is_kind(node: ast.AST) -> bool:
    """Whether an expression is a channel's name or class, or a kind of delivery."""
    if isinstance(node, ast.Constant):
        return node.value in NAMES
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(is_kind, node.elts))
    if isinstance(node, ast.BinOp):
        return is_kind(node.left) or is_kind(node.right)
    if isinstance(node, ast.Attribute) and node.attr == "name":
        return isinstance(node.value, ast.Name) and node.value.id in CLASSES
    return isinstance(node, ast.Name) and node.id in CLASSES | DELIVERIES


def questions() -> Iterator[str]:
    """Where it is asked, outside of the channels' own modules."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(OWN):
            continue
        tree = ast.parse(path.read_text())
        lines = {n.lineno for n in ast.walk(tree) if is_asked(n)}  # type: ignore[attr-defined]
        yield from (f"{name}:{line}" for line in sorted(lines))


def test_channels_are_asked_for_in_their_own_modules_alone():
    asked = [*questions()]
    assert len(asked) <= MOST, f"{len(asked)} questions:\n" + "\n".join(asked)
    assert len(asked) == MOST, f"only {len(asked)} are left: lower MOST"


if __name__ == "__main__":
    print(*questions(), sep="\n")
