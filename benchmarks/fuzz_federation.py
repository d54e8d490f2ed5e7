"""The decoders of a federation and of nodes, for `benchmarks.fuzz_targets`.

name, sound inputs, and what reads them
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tacit.experiment.assemble import assemble
from tacit.experiment.settings import check_experiment
from tacit.service.federation.coordinated_run import CoordinatedRun
from tacit.service.federation.invitation import Invitation
from tacit.service.federation.new_items import read_new_items, write_new_items
from tacit.service.federation.rotation import (
    SigningKeys,
    followed,
    rotation,
    sign_rotation,
    write_rotations,
)
from tacit.service.federation.sealing import (
    SealedReport,
    SumFields,
    body_size,
    new_private_key,
    public_key,
)
from tacit.service.federation.seed_batches import Closing, SeedBatch
from tacit.service.manifest import Manifest, read_document
from tacit.service.relay import batches
from tacit.service.relay.uploads import MessageFields, Upload, upload
from tacit.service.signed_document import signing_public_key
from tacit.serving.new_items import NewItem
from tacit.transport.node_answer import Kind, NodeAnswer, Share

Decoder = tuple[Callable[[bytes], object], Sequence[bytes]]


def decoders() -> Mapping[str, Decoder]:
    """Each decoder by its name, with inputs that it reads."""
    key, other = public_key(new_private_key()), public_key(new_private_key())
    of_round = Manifest(
        run=os.urandom(16),
        round=1,
        fields=SumFields("counts", 300, 65536, 4295033744, 100000),
        least_reports=20,
        most_reports=100,
        opens=1,
        closes=100,
        broadcast=os.urandom(32),
        url="http://127.0.0.1:1",
        keys={"leader": key, "helper": other},
        previous=os.urandom(32),
    )
    of_epoch = Manifest(
        run=os.urandom(16),
        round=1,
        fields=MessageFields(8, 5),
        least_reports=20,
        most_reports=100,
        opens=1,
        closes=100,
        broadcast=os.urandom(32),
        url="http://127.0.0.1:1",
        keys={"collector": key},
        previous=b"",
    )
    ids = tuple(sorted(os.urandom(16) for _ in range(3)))
    seeds = SeedBatch({id_: os.urandom(80) for id_ in ids}).body()
    return {
        "manifest": (
            partial(read_document, kind=SumFields),
            [of_round.document()],
        ),
        "epoch manifest": (
            partial(read_document, kind=MessageFields),
            [of_epoch.document()],
        ),
        "sealed report": (
            partial(SealedReport.read, numbers=4),
            [os.urandom(body_size(4))],
        ),
        "seed batch": (SeedBatch.read, [seeds]),
        "closing": (partial(Closing.read, numbers=3), [Closing(ids, bytes(12)).body()]),
        "relay closing": (batches.Closing.read, [batches.Closing(20, ids).document()]),
        "upload": (
            lambda body: Upload.read(body, of_epoch),
            [upload([os.urandom(8) for _ in range(5)], of_epoch)],
        ),
        "relay batch": (
            partial(batches.batch_messages, sealed_bytes=56),
            [batches.batch_body(os.urandom(32), os.urandom(56 * 4), 56)],
        ),
        "node answer": (
            NodeAnswer.decode,
            [
                NodeAnswer(Kind.REPORTS, Share(0, 3), (b"abc", b""), 5, 4).encode(),
                NodeAnswer.refusal(Share(1, 3), "no").encode(),
            ],
        ),
        "new items": (
            read_new_items,
            [write_new_items([NewItem("i1", "One", frozenset({("genre", "War")}))])],
        ),
        "rotation": _rotation(),
        "invitation": (Invitation.decode, [_invitation()]),
    }


def _rotation() -> Decoder:
    keys = [os.urandom(32) for _ in range(4)]
    public = [signing_public_key(key) for key in keys]
    run, first = os.urandom(16), SigningKeys(public[0], public[1])
    second = SigningKeys(public[2], public[3], number=1)
    leader, helper = (sign_rotation(second, key, run=run) for key in keys[:2])
    document = rotation(second, run=run, leader=leader, helper=helper)
    return lambda sent: followed(first, sent, run=run), [write_rotations([document])]


def _invitation() -> bytes:
    experiment = check_experiment(
        {
            "data": {
                "source": "synthetic",
                "world": {"users": 400, "items": 100},
                "validation": 30,
                "test": 30,
            },
            "method": {"name": "gram"},
            "privacy": {
                "mechanism": "central",
                "channel": "two_servers",
                "target_epsilon": 8.0,
                "delta": 1e-6,
                "min_contributors": 20,
            },
        }
    )
    run = CoordinatedRun.of(
        assemble(experiment), leader=bytes(32), helper=bytes([1]) * 32
    )
    return run.invitation.encode()
