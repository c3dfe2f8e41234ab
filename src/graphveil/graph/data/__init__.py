"""Data sets by name: registry, places, downloads, preparations, splits, generated graphs and their statistics."""
