"""What releases cost together: exact Gaussian composition, privacy loss distributions, and the papers' own bounds."""
