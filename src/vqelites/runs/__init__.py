"""Runs people can trust: in folders, with checkpoints, resumed exactly, loaded and verified again."""
