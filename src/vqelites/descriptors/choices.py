"""What a learned descriptor chose from its first data."""

from typing import Any, NamedTuple

from vqelites.descriptors.autoencoder import AutoEncoder
from vqelites.descriptors.base import AbstractDescriptor
from vqelites.descriptors.vqvae import VQVAE


class Chosen(NamedTuple):
    """How behaviors are seen: features in the "same" unit or "mixed" ones; images through a blur of this width."""

    units: str
    blur: float | None  # as a share of the image's width; None if behaviors are not images

    def __str__(self) -> str:
        if self.blur is not None:
            how = f"through a blur of {self.blur:.0%} of their width" if self.blur else "without a blur"
            return f"images {how}"
        return {"same": "features in one unit", "mixed": "features in different units, each scaled by itself"}[
            self.units
        ]


def chosen(descriptor: AbstractDescriptor, state: Any) -> Chosen | None:
    """What the descriptor in this state chose; None before its first training, or if it learns nothing."""
    if not isinstance(descriptor, VQVAE | AutoEncoder) or int(state.trainings) == 0:
        return None
    seen = (state.model.coder if isinstance(descriptor, VQVAE) else state.model).seen
    blur = round(float(seen.blur), 6) if descriptor.coding.view.image else None
    return Chosen("mixed" if seen.mixed else "same", blur)
