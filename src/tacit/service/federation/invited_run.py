"""A run that clients are invited to, without anybody's data: its start and its files.

broadcast(server)          what clients are sent before the next round
without(server)            the server after a round of which nothing is used
spend(directory, round)    the ledger's line of a round, before anybody is asked
publish(directory, server) the files of a finished run, model and card among them
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from tacit.documents import write_document
from tacit.errors import Refused
from tacit.experiment.assemble import Assembled
from tacit.experiment.privacy_card import draw_card, with_progress, write_card
from tacit.experiment.training import finished_model, released_result, write_experiment
from tacit.files import make_folders
from tacit.keys import Key
from tacit.method import Server, SumMethod
from tacit.plans import Plan
from tacit.runtime.run import RunDirectory, Spending
from tacit.service.federation.invitation import Invitation
from tacit.service.form import Form
from tacit.serving.model_file import save_model
from tacit.transport.channels import Delivery
from tacit.transport.codec import encode_broadcast


@dataclass(frozen=True, eq=False)
class InvitedRun:
    """An assembled experiment, and the invitation to it."""

    assembled: Assembled
    invitation: Invitation

    # rounds

    @cached_property
    def start(self) -> Server:
        """The server before the first round; it follows from the invitation."""
        key = Key.from_secret(self.invitation.digest).at("start")
        plan, catalog = self.invitation.plan, self.invitation.catalog
        return self.invitation.method.start(plan, catalog, key)

    def is_over(self, server: Server) -> bool:
        """Whether all rounds have been played."""
        return self.invitation.method.is_over(server)

    def broadcast(self, server: Server) -> bytes:
        """What clients are sent before the next round."""
        return encode_broadcast(self.invitation.method.broadcast(server))

    def form(self, server: Server) -> Form:
        """The bytes of the reports of the next round."""
        return self.invitation.form(self._phase(server))

    def _phase(self, server: Server) -> int:
        return self.invitation.method.broadcast(server).phase

    def without(self, server: Server) -> Server:
        """The server one round later, after a void round: as if no client reported."""
        return self._aggregated(server, self.form(server).nothing())

    def _aggregated(self, server: Server, delivery: Delivery) -> Server:
        method = self.invitation.method
        broadcast = method.broadcast(server)
        # The key draws nothing: clients or operators have added the noise.
        key = Key.from_secret(self.invitation.digest).at("round", server.round)
        context = method.context(server, broadcast, key)
        return method.aggregate(server, delivery, context)

    def goes_on_without(self, void: Collection[int]) -> bool:
        """Whether the run has a model after these rounds were void.

        It has one if each phase keeps a round: a phase adds up or averages its rounds,
        and the next phase needs what it learnt.
        """
        method, plan = self.invitation.method, self.invitation.plan
        phases = [range(plan.rounds)]
        if isinstance(method, SumMethod):
            phases = [one.rounds for one in method.phases(plan)]
        return all(set(rounds) - {*void} for rounds in phases)

    # files

    def spend(self, folder: Path, round: int) -> None:
        """Write the ledger's line of a round: before anybody is asked."""
        make_folders(folder)
        directory, experiment = RunDirectory(folder), self.assembled.experiment
        spending = Spending(
            self.assembled.simulation, directory.ledger, experiment.digest
        )
        # Nobody is asked more than once in a round, or more often than is planned.
        plan = self.invitation.plan
        most = min(round + 1, plan.sampler.most_participations(plan))
        spending.begin(round, most=most)

    def publish(self, folder: Path, server: Server) -> None:
        """Write the files of the finished run; the result last."""
        directory, assembled = RunDirectory(folder), self.assembled
        write_experiment(assembled.experiment, directory)
        card = with_progress(
            draw_card(assembled),
            directory,
            rounds_begun=server.round,
            contact=assembled.experiment.privacy.contact,
        )
        write_card(directory, card)
        model = finished_model(assembled, server)
        save_model(model, directory.model, directory.model_facts)
        result = released_result(assembled, server)
        write_document(directory.result, result, is_private=True)

    def metrics(self, server: Server) -> list[dict[str, object]]:
        """The metrics that were released under noise, if any were."""
        measured = self.assembled.measured
        found = () if measured is None else measured.all_released(server)
        return [asdict(one) for one in found]

    def shortfall(self, server: Server) -> str | None:
        """Why the model should not be published, if its released metric says so."""
        measured = self.assembled.measured
        return None if measured is None else measured.shortfall(server)


def refuse_unreached(plan: Plan) -> None:
    """Refuse a minimum that no round of the plan can reach."""
    if plan.population < plan.min_contributors:
        raise Refused(
            f"a population of {plan.population:,} is below privacy.min_contributors = "
            f"{plan.min_contributors:,}: no round could have that many reports, and "
            "nothing is used of fewer; declare more users, or a smaller minimum"
        )
