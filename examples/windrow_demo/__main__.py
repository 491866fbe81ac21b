"""Run the demo as `python -m windrow_demo`."""

import windrow_cli as cli


def main() -> None:
    """Run the command given in `sys.argv`, and exit."""
    cli.main("windrow_demo.commands")


if __name__ == "__main__":
    main()
