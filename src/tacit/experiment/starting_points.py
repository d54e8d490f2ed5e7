"""How to begin with each method on a table of users and items.

A method of sums needs a few rounds of everyone, a network a hundred rounds of some:
`Method.usual_rounds`. The settings are those of `experiments/`, where each method was
tried on MovieLens; nobody has tuned them for another table. Methods that need more than
users and items (features, impressions, texts) have no starting point: they need an
experiment file of their own.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from tacit import check
from tacit.errors import BadValue
from tacit.experiment.privacy_settings import PrivacySettings
from tacit.experiment.registry import method_class, method_names

Sections = Mapping[str, Mapping[str, Any]]

_EVERYONE = {"name": "everyone"}
_SOME = {"name": "poisson", "rate": 0.3}
STARTING_POINTS: Mapping[str, Sections] = {
    "dpals": {"run": {"sampler": _EVERYONE}, "evaluate": {"every": 4}},
    "dpmf": {"run": {"sampler": _SOME}, "evaluate": {"every": 30}},
    "dpvae": {"run": {"sampler": _SOME}, "evaluate": {"every": 50}},
    "federated_popularity": {"run": {"sampler": {"name": "once"}}},
    "fedvae": {
        "method": {
            "hidden": [],
            "latent": 64,
            "variational": False,
            "tied": True,
            "dropout": 0.0,
            "loss": "mean",
            "rate": 0.01,
            "count_rounds": 1,
        },
        "run": {"sampler": _SOME},
        "evaluate": {"every": 50},
    },
    "fmf_ldp": {"run": {"sampler": {"name": "once"}}},
    "gram": {"run": {"sampler": _EVERYONE}},
}
_KEPT_OF_RUN = ("purpose", "seed", "chunk", "checkpoint_every")
_PRIVATE = ("central", "local")  # the first of these that a method offers


def with_method(
    table: Mapping[str, Any], method: str | Mapping[str, Any]
) -> dict[str, Any]:
    """The same experiment with another method, begun as this method should be.

    `method` is a name, or a table with `name` and hyper-parameters. Data, target and
    evaluation stay; rounds and who takes part in them are the method's.
    """
    given = {"name": method} if isinstance(method, str) else dict(method)
    name = given.get("name")
    if not isinstance(name, str):
        raise BadValue(
            f"method={method!r} must be a name, or a table with name = '…' and "
            "hyper-parameters"
        )
    check.one_of(method_names(), method=name)
    changed = copy.deepcopy(dict(table))
    if changed.get("method", {}).get("name") == name:  # its rounds are its own already
        changed["method"] |= given
        return changed
    start = _start(name)
    changed["method"] = {**start.get("method", {}), **given}
    run = changed.get("run", {})
    kept = {key: value for key, value in run.items() if key in _KEPT_OF_RUN}
    usual = {"rounds": method_class(name).usual_rounds}
    changed["run"] = kept | usual | dict(start["run"])
    changed["privacy"] = _privacy(name, changed.get("privacy", {}))
    evaluate = {k: v for k, v in changed.get("evaluate", {}).items() if k != "every"}
    changed["evaluate"] = evaluate | dict(start.get("evaluate", {}))
    return copy.deepcopy(changed)


def with_method_of(
    wanted: Mapping[str, Any], table: Mapping[str, Any]
) -> dict[str, Any]:
    """The table, begun anew if another method is wanted that has a starting point.

    Sections that are none are left as they are: they are refused when they are checked.
    """
    other, own = (one.get("method") for one in (wanted, table))
    sections = (own, *(table.get(name, {}) for name in ("run", "privacy", "evaluate")))
    if not isinstance(other, Mapping) or not all(
        isinstance(one, Mapping) for one in sections
    ):
        return dict(table)
    name = other.get("name")
    if not isinstance(name, str) or name not in STARTING_POINTS:
        return dict(table)
    return with_method(table, name)


def _start(name: str) -> Sections:
    if name in STARTING_POINTS:
        return STARTING_POINTS[name]
    raise BadValue(
        f"method={name!r} needs more than a table of users and items; write an "
        "experiment file for it and give its path (docs/methods shows how). Methods "
        f"for any table: {', '.join(STARTING_POINTS)}"
    )


def _privacy(name: str, privacy: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that every mechanism has, with one that the method offers."""
    shared = {f.name for f in dataclasses.fields(PrivacySettings)}
    kept = {key: value for key, value in privacy.items() if key in shared}
    wanted, offered = kept.get("mechanism", "none"), method_class(name).mechanisms
    if wanted == "none":
        return kept
    found = [one for one in (wanted, *_PRIVATE) if one in offered]
    if not found:
        raise BadValue(
            f"method={name!r} offers no mechanism that keeps an epsilon, only "
            f"{', '.join(offered)}; train it with epsilon=math.inf"
        )
    kept["mechanism"] = found[0]
    if found[0] == "local":  # each client protects itself: no sum, and no delta
        kept.pop("channel", None)
        kept.pop("delta", None)
    return kept
