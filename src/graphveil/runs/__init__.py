"""What stays on disk: run folders, loading, verification."""
