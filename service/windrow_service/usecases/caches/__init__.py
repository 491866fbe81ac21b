"""Cache rules, and what workers hold."""
