"""Quality-Diversity without hand-designed descriptors: VQ-Elites and its relatives."""

from vqelites.algorithms import Effort as Effort
from vqelites.algorithms import aurora as aurora
from vqelites.algorithms import aurora_plus as aurora_plus
from vqelites.algorithms import cvt_map_elites as cvt_map_elites
from vqelites.algorithms import map_elites as map_elites
from vqelites.algorithms import vq_elites as vq_elites
from vqelites.loop import QD as QD
from vqelites.optimizer import VQElites as VQElites
from vqelites.types import Elites as Elites
from vqelites.types import Evaluation as Evaluation
from vqelites.types import SolutionSpace as SolutionSpace
