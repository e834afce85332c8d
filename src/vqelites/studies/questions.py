"""The questions that the paper asks, and which runs answer them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question, and what answers it: tasks of the comparison, ablations."""

    text: str
    lead: str
    tasks: tuple[str, ...] = ()
    ablations: tuple[str, ...] = ()


QUESTIONS = (
    Question(
        "How does VQ-Elites compare with MAP-Elites when everything is known beforehand?",
        "Here hand-coded cells fit the task: every one of them can be reached.",
        ("mobile-free", "arm"),
    ),
    Question(
        "And when walls or limits of the robot are not known?",
        "Hand-coded cells now lie partly behind walls or beyond joint limits. Learned ones can go where solutions go.",
        ("mobile-l", "arm-constrained"),
    ),
    Question(
        "Is VQ-Elites robust, or does it need tuning?",
        "The pace of model updates, the bootstrap and the start of the codebook are varied.",
        ablations=("ablation-update", "ablation-start"),
    ),
    Question(
        "How vital are bounded descriptors and cooperation?",
        "Each is switched on and off with all else the same.",
        ablations=("ablation-bounding", "ablation-cooperation"),
    ),
    Question(
        "Can it solve hard exploration?",
        "Rooms open one after the other, and only to an agent that found the right key.",
        ("minigrid",),
    ),
)
