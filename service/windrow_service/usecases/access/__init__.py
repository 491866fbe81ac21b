"""Who calls, what they may do, and the tokens that say so."""
