"""What is wrong with a learned map, in words: the likely cause and what to do about it."""

import math

_FEW = 0.1  # of the codes that could be in use; at half of it a map is begun anew (descriptors/health.py)
_NEXT_TO_NOTHING = 0.95  # of the variance unexplained: what 2 latent numbers leave of 50 numbers of pure noise
_MANY = 0.3  # of the descriptors at the limits: saturation is the likely cause


def diagnoses(
    *,
    evaluations: int,
    behaviors: int,
    codes_used: float,
    saturated: float,
    restarted: bool,
    unexplained: float,
    latent: int,
    cells: int,
) -> dict[str, str]:
    """A sentence or two for each problem that the numbers of a training show; nothing for a healthy map."""
    found = {}
    stored = f"stored after {evaluations} evaluations" if evaluations else "to start from"
    if restarted:
        found["restarted"] = (
            "The map had collapsed: distinct behaviors shared very few codes. It was begun anew from all stored "
            "behaviors; if that happens often, try more latent numbers or a larger bootstrap."
        )
    elif behaviors == 1:
        found["alike"] = (
            f"All behaviors {stored} are alike: there is nothing to tell apart, and the archive holds a single elite. "
            "Check what the simulator returns as behavior; it seems to be constant (differences below a millionth of "
            "its size are taken for rounding)."
        )
    elif not math.isnan(codes_used) and codes_used < _FEW * min(behaviors, cells):
        share = f"{behaviors} distinct behaviors share {codes_used:.0f} of {cells} codes."
        found["few codes"] = f"{share} {_cause(saturated, latent)}"
    if behaviors > 1 and unexplained > _NEXT_TO_NOTHING and not restarted:
        found["nothing learned"] = (
            f"The model has learned next to nothing: it explains {max(1 - unexplained, 0):.0%} of the variance of "
            "behaviors, and their places on the map are all but arbitrary. Probably most of what is recorded is noise: "
            f"average it away, or leave it out. Or {_numbers(latent)} too few, or the training was too short: use more "
            "(latent_dim), or more first behaviors or epochs (bootstrap, bootstrap_epochs)."
        )
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
    return (
        f"Probably {_numbers(latent)} too few to tell them apart: use more. Or a few features outweigh all others: "
        'where they are in different units, say units="mixed".'
    )


def _numbers(latent: int) -> str:
    return "1 latent number is" if latent == 1 else f"{latent} latent numbers are"
