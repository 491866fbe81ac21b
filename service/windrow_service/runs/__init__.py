"""Work outside requests: leases, refreshes, background plans, threads, turns, shared work."""
