"""Slow archives, maps and statistics in plain Python, from their definitions: what the fast ones must agree with."""
