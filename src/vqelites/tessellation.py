from vqelites.archives.tessellation import cvt, grid
