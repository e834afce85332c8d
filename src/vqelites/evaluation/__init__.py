"""Evaluation: what happened. It knows simulators and nothing of the loop, and imports no JAX, so workers start fast."""

from vqelites.evaluation.base import AbstractEvaluator as AbstractEvaluator
from vqelites.evaluation.base import Activity as Activity
from vqelites.evaluation.base import EvaluatorError as EvaluatorError
from vqelites.evaluation.base import Failure as Failure
from vqelites.evaluation.base import Kind as Kind
from vqelites.evaluation.base import Result as Result
from vqelites.evaluation.base import Value as Value
from vqelites.evaluation.base import probe as probe
from vqelites.evaluation.cluster import ClusterEvaluator as ClusterEvaluator
from vqelites.evaluation.local import LocalEvaluator as LocalEvaluator
from vqelites.evaluation.outcomes import Reasons as Reasons
from vqelites.evaluation.outcomes import arrays as arrays
from vqelites.evaluation.pool import PoolEvaluator as PoolEvaluator
from vqelites.evaluation.simulator import Simulator as Simulator
from vqelites.evaluation.simulator import evaluation_seeds as evaluation_seeds
