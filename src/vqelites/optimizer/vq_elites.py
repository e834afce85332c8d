"""VQ-Elites by its own name."""

from typing import Any, ClassVar

from vqelites.optimizer.asktell import AskTell


class VQElites(AskTell):
    """VQ-Elites around any simulator: `AskTell` with that algorithm."""

    only: ClassVar[str | None] = "vq-elites"

    def __init__(self, **options: Any):
        super().__init__("vq-elites", **options)
