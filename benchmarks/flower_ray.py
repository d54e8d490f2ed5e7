"""What `benchmarks.flower --ray` runs: a client app per user, a server that asks all.

Each client makes the report of one user by Tacit's own `participate`, as Flower's
simulation would have it: one message, one process of Ray's, one user.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

ITEMS, EVENTS = 2_000, 20


@cache
def _world():  # type: ignore[no-untyped-def]
    from tacit.data.catalog import Catalog
    from tacit.methods.federated_popularity import FederatedPopularity
    from tacit.plans import Plan
    from tacit.privacy import CentralGaussian

    method = FederatedPopularity(max_votes=20, privacy=CentralGaussian(1.0))
    catalog = Catalog.of_ids([f"i{i}" for i in range(ITEMS)])
    plan = Plan(200_000, rounds=2, channel="secure_sum", delta=1e-7)
    return method, plan, catalog


def _answer(message: Message, context: Context) -> Message:
    from tacit.data.catalog import Profiles
    from tacit.data.shards import Shards
    from tacit.data.strings import Strings
    from tacit.keys import Key
    from tacit.method import Unmetered, enrol, participate

    method, plan, catalog = _world()
    user = int(context.node_config["partition-id"])
    draws = np.random.default_rng(user)
    held = Shards.of_history(draws.integers(ITEMS, size=EVENTS), n_items=ITEMS)
    keys = Key.from_seed(1).at("clients").each([user])
    nobody = Profiles(Strings.of([str(user)]))
    clients = enrol(method, plan, nobody, keys, catalog=catalog)
    server = method.start(plan, catalog, Key.from_seed(1))
    broadcast = method.broadcast(server)
    _, reports, _ = participate(
        method, broadcast, clients, held, keys, ledger=Unmetered()
    )
    votes = np.asarray(reports.tree["votes"])
    content = RecordDict({"votes": ArrayRecord({"votes": Array(votes)})})
    return Message(content, reply_to=message)


client = ClientApp()
client.query()(_answer)


def server_for(clients: int, took: list[float]) -> ServerApp:
    """A server that asks everybody once and notes how long that took."""

    def main(grid: Grid, _: Context) -> None:
        while len(nodes := [*grid.get_node_ids()]) < clients:
            time.sleep(0.5)
        public = ArrayRecord({"share": Array(np.zeros(ITEMS))})

        def ask() -> None:
            messages = [
                Message(RecordDict({"public": public}), node, "query") for node in nodes
            ]
            replies = [*grid.send_and_receive(messages)]
            total = np.zeros(ITEMS)
            for reply in replies:
                total += reply.content["votes"]["votes"].numpy()[0]
            assert len(replies) == clients

        ask()  # workers start, and import what they need
        began = time.monotonic()
        ask()
        took.append(time.monotonic() - began)

    app = ServerApp()
    app.main()(main)
    return app
