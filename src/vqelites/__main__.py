"""`python -m vqelites` is the command line."""

from vqelites.cli import main

main()
