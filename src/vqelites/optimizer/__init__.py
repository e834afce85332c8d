"""Ask/tell: every algorithm for those who own their loop."""

from vqelites.optimizer.asktell import AskTell as AskTell
from vqelites.optimizer.told import Told as Told
from vqelites.optimizer.vq_elites import VQElites as VQElites
