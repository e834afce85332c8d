"""What environments side by side in one worker save: processor time of 64 episodes of at most 200 steps.

python benchmarks/vector.py
"""

import time

import numpy as np

from vqelites import GymTask

EPISODES, REPEATS = 64, 3


def seconds(name: str, vector: int) -> float:
    """Of the fastest of some times."""
    task = GymTask(name, vector=vector, steps=200)
    solutions = np.random.default_rng(0).uniform(-1, 1, (EPISODES, task.interface.solution_dim)).astype(np.float32)
    taken = []
    for _ in range(REPEATS):
        began = time.process_time()
        if vector > 1:
            task.simulate(solutions, np.arange(EPISODES))
        else:
            for seed, solution in enumerate(solutions):
                task.simulate(solution, seed)
        taken.append(time.process_time() - began)
    return min(taken)


if __name__ == "__main__":
    for name in ("CartPole-v1", "LunarLander-v3", "HalfCheetah-v5"):
        print(name, ", ".join(f"{vector}: {1000 * seconds(name, vector):.0f} ms" for vector in (1, 8, 32)), flush=True)
