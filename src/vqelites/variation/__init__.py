"""Variation: what to try next."""

from vqelites.variation.base import AbstractVariation as AbstractVariation
from vqelites.variation.operators import Gaussian as Gaussian
from vqelites.variation.operators import IsoLine as IsoLine
from vqelites.variation.operators import SBXPolynomial as SBXPolynomial
from vqelites.variation.selection import fittest as fittest
from vqelites.variation.selection import uniform_rows as uniform_rows
