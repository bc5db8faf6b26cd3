"""One fit on disk: its folder, recipes, resuming."""
