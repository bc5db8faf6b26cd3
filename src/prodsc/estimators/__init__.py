"""The framework of every method: parameters, checks, the training of a network, model files."""
