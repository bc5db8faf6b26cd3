"""Pure functions of tensors and arrays: self-expression, losses, theory, graphs and metrics."""
