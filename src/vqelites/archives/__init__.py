"""Archives: who stays, and where."""

from vqelites.archives.addition import AbstractAddition as AbstractAddition
from vqelites.archives.addition import Compete as Compete
from vqelites.archives.addition import Cooperate as Cooperate
from vqelites.archives.addition import Dominate as Dominate
from vqelites.archives.addition import Scheduled as Scheduled
from vqelites.archives.base import AbstractArchive as AbstractArchive
from vqelites.archives.base import InsertInfo as InsertInfo
from vqelites.archives.base import InsertOutcome as InsertOutcome
from vqelites.archives.base import InsertStatus as InsertStatus
from vqelites.archives.cells import CellArchive as CellArchive
from vqelites.archives.unstructured import UnstructuredArchive as UnstructuredArchive
