"""What can be run: the settings of every algorithm as typed records, presets, and the algorithms built from them."""
