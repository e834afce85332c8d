"""From a configuration to results: presets, runs in folders, studies of many runs, statistics and reports."""
