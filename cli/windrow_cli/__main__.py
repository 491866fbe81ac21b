"""Run the command line as `python -m windrow_cli`."""

from windrow_cli import main

if __name__ == "__main__":
    main()
