"""What is wrong with a learned map, in words: the likely cause and what to do about it."""

import math

_FEW = 0.1  # of the codes that could be in use; at half of it a map is begun anew (descriptors/health.py)
_MANY = 0.3  # of the descriptors at the limits: saturation is the likely cause


def diagnoses(
    *,
    evaluations: int,
    behaviors: int,
    codes_used: float,
    saturated: float,
    restarted: bool,
    latent: int,
    cells: int,
) -> dict[str, str]:
    """A sentence or two for each problem that the numbers of `MapInfo` show; nothing for a healthy map."""
    found = {}
    if restarted:
        found["restarted"] = (
            "The map had collapsed: distinct behaviors shared very few codes. It was begun anew from all stored "
            "behaviors; if that happens often, try more latent numbers or a larger bootstrap."
        )
    elif behaviors == 1:
        found["alike"] = (
            f"All behaviors stored after {evaluations} evaluations are alike: there is nothing to tell apart, and the "
            "archive holds a single elite. Check what the simulator returns as behavior; it seems to be constant "
            "(differences below a millionth of its size are taken for rounding)."
        )
    elif not math.isnan(codes_used) and codes_used < _FEW * min(behaviors, cells):
        share = f"{behaviors} distinct behaviors share {codes_used:.0f} of {cells} codes."
        found["few codes"] = f"{share} {_cause(saturated, latent)}"
    return found


def outpaced(updates: int, planned: int) -> str:
    """What it means that evaluations, which do not wait for training, were much faster."""
    return (
        f"The map was updated {updates} times, where a run in step updates it {planned} times: evaluations did not "
        'wait for training, and were faster. An old map holds fewer elites; a run in step (mode="step") waits.'
    )


def _cause(saturated: float, latent: int) -> str:
    if saturated > _MANY:
        return (
            f"{saturated:.0%} of the descriptors are at the limits of the learned space: many behaviors lie far from "
            "the first ones, by which they are scaled. Give it more, or more varied, first behaviors (bootstrap)."
        )
    numbers = "1 latent number is" if latent == 1 else f"{latent} latent numbers are"
    return (
        f"Probably {numbers} too few to tell them apart: use more. Or a few features outweigh all others: where they "
        'are in different units, say units="mixed".'
    )
