"""Programs that tests start as processes of their own: `python -m tests.programs.NAME`."""
