"""The command `vqelites`, also as `python -m vqelites`."""


def main() -> None:
    """Run the command line."""
    from vqelites.cli import main as command_line  # not at the top: every worker process imports this module again

    command_line()


if __name__ == "__main__":
    main()
