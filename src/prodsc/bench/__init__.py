"""Many fits: trials in processes of their own, comparison, search of settings."""
