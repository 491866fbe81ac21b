"""Maintenance that runs itself: policies, a budget, decisions, and the work that follows."""
