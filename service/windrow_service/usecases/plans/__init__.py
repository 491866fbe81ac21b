"""Plans: made, kept, paged through and explained."""
