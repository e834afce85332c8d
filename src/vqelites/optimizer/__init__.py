"""Ask/tell: every algorithm for those who own their loop."""

from vqelites.optimizer.asktell import AskTell as AskTell
from vqelites.optimizer.asktell import VQElites as VQElites
from vqelites.optimizer.told import Told as Told
