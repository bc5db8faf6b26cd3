"""The paper: its tables and figures, published numbers, and the networks that only they need."""
