"""Run the command line as `python -m windrow.cli`."""

from windrow.cli import main

if __name__ == "__main__":
    main()
