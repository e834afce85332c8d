"""Pictures of archives, descriptor spaces, codebooks, tasks and progress: every figure of the paper."""

from vqelites.plots.archive import archive_views as archive_views
from vqelites.plots.archive import true_space as true_space
from vqelites.plots.behavior import behavior_gallery as behavior_gallery
from vqelites.plots.codebook import decoded_codes as decoded_codes
from vqelites.plots.curves import algorithm_curves as algorithm_curves
from vqelites.plots.curves import drift_curves as drift_curves
from vqelites.plots.curves import metric_curves as metric_curves
from vqelites.plots.latent import latent_cells as latent_cells
from vqelites.plots.maps import at_work as at_work
from vqelites.plots.maps import final_positions as final_positions
from vqelites.plots.maps import task_maps as task_maps
from vqelites.plots.overview import overview as overview
from vqelites.plots.projection import elite_grids as elite_grids
from vqelites.plots.spread import spread as spread
from vqelites.plots.style import save as save
