"""VQ-Elites by its own name."""

from typing import ClassVar

from vqelites.optimizer.asktell import AskTell


class VQElites(AskTell):
    """VQ-Elites around any simulator: `AskTell` with that algorithm, and with all its other arguments."""

    only: ClassVar[str | None] = "vq-elites"
