"""A method that chooses its phases as it goes, for several tests."""

from dataclasses import dataclass

from tacit.methods.federated_popularity import FederatedPopularity
from tacit.phase import Phase
from tacit.privacy import CentralGaussian


@dataclass(frozen=True)
class Chooses(FederatedPopularity):
    """Popularity whose phases are given: names, one after the other, then the end.

    A round of `dear` takes half of the run's budget and may be one of the first two; a
    round of `cheap` takes a quarter.
    """

    wants: tuple[str, ...] = ("dear", "cheap", "cheap")

    def phases(self, plan):
        return (
            Phase("dear", range(2), what="votes"),
            Phase("cheap", range(4), what="cheap votes"),
        )

    def next_phase(self, server):
        if server.round >= len(self.wants):
            return None
        named = {phase.name: phase for phase in self.phases(server.plan)}
        return named[self.wants[server.round]]


def choosing(*wants: str, total: float = 2.0) -> Chooses:
    """With noise such that the whole run is one Gaussian release of `total`."""
    return Chooses(wants=wants, privacy=CentralGaussian(total_noise=total))
