"""A page in the browser that shows runs: the map, how it unfolds, what its elites do. It sees runs only as `Source`."""
