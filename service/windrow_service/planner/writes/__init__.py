"""Write plans: how many files, where rows go, and the predicted outcome of each scheme."""
