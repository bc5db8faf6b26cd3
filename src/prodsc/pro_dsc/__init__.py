"""PRO-DSC: options, training, labels, constraints and diagnosis."""
