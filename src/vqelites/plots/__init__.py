"""Pictures of archives, descriptor spaces and progress."""

from vqelites.plots.archive import true_space as true_space
from vqelites.plots.curves import metric_curves as metric_curves
from vqelites.plots.latent import latent_cells as latent_cells
from vqelites.plots.style import save as save
